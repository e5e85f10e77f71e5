"""The key of a replica of the metadata log."""

from typing import NamedTuple

from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text


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
