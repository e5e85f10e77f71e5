"""What the translations of all APIs share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from kvorum.raft.basics import Endpoint, Endpoints, ReplicaKey, endpoint_named
from kvorum.raft.messages import Error, KnownLeader, RequestFailed
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import ZERO_UUID

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_PARTITION: Final = 0
NO_NODE: Final = -1
_PORT_MAX: Final = 65_535


class HasPartitionIndex(Protocol):
    """A partition of a request or response."""

    partition_index: int


_Partition_co = TypeVar("_Partition_co", bound=HasPartitionIndex, covariant=True)


class HasPartitions(Protocol[_Partition_co]):
    """A topic of a request or response, known by its name."""

    topic_name: str

    @property
    def partitions(self) -> Sequence[_Partition_co]:
        """The partitions of the topic."""
        ...


def only_partition(topics: Sequence[HasPartitions[_Partition_co]]) -> _Partition_co | None:
    """Return the metadata partition if that, and nothing else, is in `topics`."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != METADATA_PARTITION:
        return None
    return partitions[0]


def is_other_cluster(cluster_id: str | None, own_cluster_id: str) -> bool:
    """Tell whether a request is meant for another cluster; one that does not say is not."""
    return cluster_id is not None and cluster_id != own_cluster_id


def other_cluster_text(cluster_id: str | None, own_cluster_id: str) -> str:
    """Return Kafka's text for a request that is meant for another cluster."""
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{own_cluster_id}"'


def endpoints_by_name(endpoints: Iterable[Endpoint]) -> Endpoints:
    """Return one endpoint for each listener, the last one that is named."""
    return tuple({endpoint.name: endpoint for endpoint in endpoints}.values())


def endpoint_where_known(listener_name: str, host: str, port: int) -> Endpoints:
    """Return an endpoint if there is one: requests leave host and port empty where it is not."""
    return (Endpoint(listener_name, host, port),) if host and 0 < port <= _PORT_MAX else ()


def key_or_none(replica_id: int, directory_id: bytes) -> ReplicaKey | None:
    """Return a replica's key; negative ids stand for nobody."""
    return None if replica_id < 0 else replica_key(replica_id, directory_id)


def replica_key(replica_id: int, directory_id: bytes) -> ReplicaKey:
    """Return a replica's key; the zero uuid stands for a directory that is not known."""
    return ReplicaKey(replica_id, None if directory_id == ZERO_UUID else directory_id)


def directory_id_of(key: ReplicaKey | None) -> bytes:
    """Return a key's directory id as requests write it."""
    return ZERO_UUID if key is None or key.directory_id is None else key.directory_id


def leader_id_of(leader: KnownLeader) -> int:
    """Return the leader's id, -1 for none."""
    return NO_NODE if leader.leader_id is None else leader.leader_id


def leader_endpoint(
    leader: KnownLeader, *, listener_name: str, is_version_new_enough: bool
) -> Endpoint | None:
    """Return where the leader listens under the name of the listener that is asked on."""
    if not is_version_new_enough or leader.leader_id is None:
        return None
    return endpoint_named(leader.endpoints, listener_name)


class HasEndpoint(Protocol):
    """Where a node listens, as responses say it."""

    node_id: int
    host: str
    port: int


def known_leader(
    epoch: int, leader_id: int, endpoints: Sequence[HasEndpoint], *, listener_name: str
) -> KnownLeader:
    """Return what a response tells of the leader; its endpoint is put under `listener_name`."""
    if leader_id < 0:
        return KnownLeader(epoch)
    found: Endpoints = tuple(
        Endpoint(listener_name, one.host, one.port)
        for one in endpoints
        if one.node_id == leader_id and one.host and 0 < one.port <= _PORT_MAX
    )
    return KnownLeader(epoch, leader_id, found[:1])


def error_of(code: int) -> Error:
    """Return the core's name of an error code; what it has no name for is an unknown error."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


def failed(error_code: int) -> RequestFailed:
    """Return what a response is that is an error as a whole."""
    name = ErrorCode(error_code).name if error_code in ErrorCode.__members__.values() else ""
    return RequestFailed(
        f"the response is error {error_code} {name}".rstrip(),
        lacks_version=error_code == ErrorCode.UNSUPPORTED_VERSION,
    )


def misshapen(what: str) -> RequestFailed:
    """Return what a response is that does not answer what was asked."""
    return RequestFailed(f"the {what} does not hold the metadata partition")
