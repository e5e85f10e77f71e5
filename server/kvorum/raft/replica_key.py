"""The key of a replica: its id and the directory of its log."""

from typing import NamedTuple


class ReplicaKey(NamedTuple):
    """A replica: the node's id and, where it is known, the directory that holds the log."""

    id: int
    directory_id: bytes | None = None
