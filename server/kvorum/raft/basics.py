"""The small values of the core: replica keys, endpoints, destinations, the election record."""

from typing import NamedTuple, TypeAlias


class ReplicaKey(NamedTuple):
    """A replica: the node's id and, where it is known, the directory that holds the log."""

    id: int
    directory_id: bytes | None = None


class Endpoint(NamedTuple):
    """An address at which a node listens; `name` is the listener's name in upper case."""

    name: str
    host: str
    port: int


EPOCH_MAX = 2**31 - 2
"""The highest epoch that a replica enters because a peer names it: an election needs one more."""

Endpoints: TypeAlias = tuple[Endpoint, ...]


class Destination(NamedTuple):
    """The target of a request. Servers known by address only have ids of -2 and below."""

    id: int
    host: str
    port: int

    @property
    def is_known_by_address_only(self) -> bool:
        """Whether this is a bootstrap server: which replica it leads to is not known."""
        return self.id < 0


class ElectionRecord(NamedTuple):
    """The state that must survive a restart: the epoch, and the leader and the vote in it."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


def endpoint_named(endpoints: Endpoints, name: str) -> Endpoint | None:
    """Return the endpoint of the listener called `name`."""
    return next((endpoint for endpoint in endpoints if endpoint.name == name), None)
