"""The small values everything else in the core is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class OffsetAndEpoch(NamedTuple):
    """A log position and the leader epoch of the record before it."""

    offset: int
    epoch: int

    def is_before(self, other: OffsetAndEpoch) -> bool:
        """Tell whether a log that ends here is behind one that ends at `other`: epochs decide."""
        return (self.epoch, self.offset) < (other.epoch, other.offset)


BOOTSTRAP_SNAPSHOT_ID = OffsetAndEpoch(0, 0)
"""The snapshot that formatting a directory leaves: it holds the first voters and no records."""


@dataclass(frozen=True, slots=True)
class ReplicaKey:
    """A replica: the node's id and, where it is known, the directory that holds the log."""

    id: int
    directory_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a node listens, under the name of a listener (in upper case)."""

    name: str
    host: str
    port: int


EPOCH_MAX = 2**31 - 2
"""The highest epoch that is entered on anyone's word: one must be left for an election."""

Endpoints: TypeAlias = tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Destination:
    """Whom to send to. Servers known by address only have ids of -2 and below."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ElectionRecord:
    """What must survive a restart: the epoch, and the leader and the vote given in it."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


def endpoint_named(endpoints: Endpoints, name: str) -> Endpoint | None:
    """Return the endpoint of the listener called `name`."""
    return next((endpoint for endpoint in endpoints if endpoint.name == name), None)
