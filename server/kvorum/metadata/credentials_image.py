"""SCRAM credentials of users and delegation tokens, folded from their records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique
from types import MappingProxyType
from typing import Final, NamedTuple

from immutables import Map

from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord


@unique
class ScramMechanism(IntEnum):
    """Kafka's numbers for the mechanisms; anything else is unknown."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name in SASL and in Kafka's tools: SCRAM-SHA-256."""
        return self.name.replace("_", "-")


SCRAM_DIGESTS: Final[Mapping[ScramMechanism, str]] = MappingProxyType(
    {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
)
"""The hash of each mechanism, by Python's name."""
SCRAM_ITERATIONS_MIN: Final = 4_096


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A stored SCRAM credential; its representation leaves out salt and keys."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramImage:
    """The credential of each mechanism and user."""

    credentials: Map[tuple[int, str], ScramCredential] = field(
        default_factory=Map[tuple[int, str], ScramCredential]
    )


def replay_user_scram_credential(
    image: ScramImage, record: UserScramCredentialRecord
) -> ScramImage:
    """Return `image` with a user's credential set."""
    credential = ScramCredential(
        record.salt, record.stored_key, record.server_key, record.iterations
    )
    return ScramImage(image.credentials.set((record.mechanism, record.name), credential))


def replay_remove_user_scram_credential(
    image: ScramImage, record: RemoveUserScramCredentialRecord
) -> ScramImage:
    """Return `image` without a user's credential."""
    key = (record.mechanism, record.name)
    return ScramImage(image.credentials.delete(key)) if key in image.credentials else image


class DelegationToken(NamedTuple):
    """A token without its secret; principals are "Type:name", times milliseconds since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class DelegationTokensImage:
    """Every delegation token by its id."""

    tokens: Map[str, DelegationToken] = field(default_factory=Map[str, DelegationToken])


def replay_delegation_token(
    image: DelegationTokensImage, record: DelegationTokenRecord
) -> DelegationTokensImage:
    """Return `image` with one token added or renewed."""
    token = DelegationToken(
        owner=record.owner,
        requester=record.requester,
        renewers=tuple(record.renewers),
        issue_timestamp_ms=record.issue_timestamp,
        max_timestamp_ms=record.max_timestamp,
        expiration_timestamp_ms=record.expiration_timestamp,
    )
    return DelegationTokensImage(image.tokens.set(record.token_id, token))


def replay_remove_delegation_token(
    image: DelegationTokensImage, token_id: str
) -> DelegationTokensImage:
    """Return `image` without one token."""
    if token_id not in image.tokens:
        return image
    return DelegationTokensImage(image.tokens.delete(token_id))
