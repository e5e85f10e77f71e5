"""Delegation tokens, folded from their records."""

from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord


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
