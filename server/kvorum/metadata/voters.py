"""The keys of voters, and the target voters of the quorum (KIP-642): a dynamic configuration.

The value lists the wanted voters, ``4,5,6``; a voter may be named with its directory,
``4:Directory,5,6``. A replica that does not know the key keeps the value like any other: real
controllers and brokers replay it, write it into their snapshots, and do not act on it.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from kvorum.metadata.directory_ids import is_reserved
from kvorum.metadata.image import MetadataImage
from kvorum.wire.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text

TARGET_VOTERS: Final = "kvorum.quorum.target.voters"
INT32_MAX: Final = 2**31 - 1
ID_DIGITS_MAX: Final = 10
"""The digits of the largest id; Python refuses to read numbers of some thousand digits."""
QUOTED_MAX: Final = 50
"""The part of a bad value that is quoted: all of it may not fit a response."""


class VoterKey(NamedTuple):
    """A replica of the metadata log: a node's id, and the directory that holds the log.

    The directory is None at kraft.version 0, for a replica that did not name it, and where the
    target voters may leave it open.
    """

    id: int
    directory_id: bytes | None = None

    def __str__(self) -> str:
        if self.directory_id is None:
            return str(self.id)
        return f"{self.id}:{uuid_to_text(self.directory_id)}"


def voter_key(node_id: int, directory_id: bytes) -> VoterKey:
    """Return the key that a message names; the zero uuid means an unknown directory."""
    return VoterKey(node_id, None if directory_id == ZERO_UUID else directory_id)


TargetVoters: TypeAlias = tuple[VoterKey, ...]
"""The wanted voters by id; one without a directory is any replica of its node."""


class InvalidTargetVotersError(ValueError):
    """The target voters cannot be read, or no quorum can consist of them."""


def parse_target_voters(text: str) -> TargetVoters:
    """Return the target voters that `text` lists; raise `InvalidTargetVotersError`."""
    if not text.strip():
        raise InvalidTargetVotersError("The target voters are empty: a quorum needs a voter.")
    return checked_target_voters(_parse_one(part.strip()) for part in text.split(","))


def checked_target_voters(targets: Iterable[VoterKey]) -> TargetVoters:
    """Return `targets` in the order of their ids; raise `InvalidTargetVotersError`."""
    found = tuple(targets)
    if not found:
        raise InvalidTargetVotersError("The target voters are empty: a quorum needs a voter.")
    seen: set[int] = set()
    for target in found:
        if not 0 <= target.id <= INT32_MAX:
            raise InvalidTargetVotersError(f"{target.id} is not the id of a node.")
        if target.id in seen:
            raise InvalidTargetVotersError(f"The target voters list node {target.id} twice.")
        seen.add(target.id)
    return tuple(sorted(found, key=lambda target: target.id))


def target_voters_text(targets: Iterable[VoterKey]) -> str:
    """Return the value that `parse_target_voters` reads as `targets`."""
    return ",".join(map(str, targets))


def recorded_target_voters(image: MetadataImage) -> str | None:
    """Return the value in the metadata, None while no reassignment of the quorum is wanted.

    The value may be one that cannot be read: a leader that does not know the key does not check it.
    """
    return image.configs.of_cluster().get(TARGET_VOTERS)


def readable_target_voters(image: MetadataImage) -> TargetVoters | None:
    """Return the wanted voters; None without any, or where they cannot be read."""
    text = recorded_target_voters(image)
    if text is None:
        return None
    try:
        return parse_target_voters(text)
    except InvalidTargetVotersError:
        return None


def _parse_one(text: str) -> VoterKey:
    id_text, separator, directory_text = text.partition(":")
    if not (id_text.isascii() and id_text.isdecimal() and len(id_text) <= ID_DIGITS_MAX):
        raise InvalidTargetVotersError(
            f"'{_quoted(text)}' is no target voter: expected the id of a node, or id:directory."
        )
    if not separator:
        return VoterKey(int(id_text))
    try:
        directory_id = uuid_from_text(directory_text)
    except ValueError as error:
        raise InvalidTargetVotersError(
            f"'{_quoted(directory_text)}' is no directory id of node {id_text}: {error}."
        ) from error
    if is_reserved(directory_id):
        raise InvalidTargetVotersError(
            f"'{directory_text}' is reserved and names no directory of node {id_text}."
        )
    return VoterKey(int(id_text), directory_id)


def _quoted(text: str) -> str:
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}…"
