"""Functions that the translations of several APIs share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.raft.endpoints import Endpoint, Endpoints, endpoint_named
from kvorum.raft.messages import Error, KnownLeader, RequestFailed
from kvorum.raft.replica_key import ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import ZERO_UUID

NO_NODE: Final = -1
_PORT_MAX: Final = 65_535
Written = TypeVar("Written")


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
    """Return the metadata partition if `topics` contain it, and nothing else."""
    if len(topics) != 1 or topics[0].topic_name != CLUSTER_METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != CLUSTER_METADATA_PARTITION:
        return None
    return partitions[0]


class _QuorumRequest(Protocol[_Partition_co]):
    cluster_id: str | None

    @property
    def topics(self) -> Sequence[HasPartitions[_Partition_co]]: ...


def demanded_partition(
    request: _QuorumRequest[_Partition_co], *, cluster_id: str
) -> _Partition_co | ErrorCode:
    """Return the metadata partition of a request, or the error to refuse the request with."""
    if is_other_cluster(request.cluster_id, cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    partition = only_partition(request.topics)
    return ErrorCode.INVALID_REQUEST if partition is None else partition


def is_other_cluster(cluster_id: str | None, own_cluster_id: str) -> bool:
    """Return whether a request is for another cluster; one without a cluster id is not."""
    return cluster_id is not None and cluster_id != own_cluster_id


def other_cluster_text(cluster_id: str | None, own_cluster_id: str) -> str:
    """Return Kafka's text for a request that is for another cluster."""
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{own_cluster_id}"'


class _Listener(Protocol):
    name: str
    host: str
    port: int


def read_endpoints(listeners: Iterable[_Listener]) -> Endpoints:
    """Return endpoints of a request or record; the names of listeners are in capitals."""
    return tuple(Endpoint(one.name.upper(), one.host, one.port) for one in listeners)


def write_endpoints(endpoints: Endpoints, new: Callable[[str, str, int], Written]) -> list[Written]:
    """Return endpoints as instances of `new`, the class of a request."""
    return [new(one.name, one.host, one.port) for one in endpoints]


def endpoints_by_name(endpoints: Iterable[Endpoint]) -> Endpoints:
    """Return one endpoint for each listener; of several, the last one."""
    return tuple({endpoint.name: endpoint for endpoint in endpoints}.values())


def endpoint_where_known(listener_name: str, host: str, port: int) -> Endpoints:
    """Return the endpoint if there is one: in requests, empty host and port mean none."""
    return (Endpoint(listener_name, host, port),) if host and 0 < port <= _PORT_MAX else ()


def key_or_none(replica_id: int, directory_id: bytes) -> ReplicaKey | None:
    """Return a replica's key; a negative id means no replica."""
    return None if replica_id < 0 else replica_key(replica_id, directory_id)


def replica_key(replica_id: int, directory_id: bytes) -> ReplicaKey:
    """Return a replica's key; the zero uuid means an unknown directory."""
    return ReplicaKey(replica_id, None if directory_id == ZERO_UUID else directory_id)


def id_of(key: ReplicaKey | None) -> int:
    """Return a key's replica id as requests write it, -1 without one."""
    return NO_NODE if key is None else key.id


def directory_id_of(key: ReplicaKey | None) -> bytes:
    """Return a key's directory id in the form of requests."""
    return ZERO_UUID if key is None or key.directory_id is None else key.directory_id


def leader_id_of(leader: KnownLeader) -> int:
    """Return the leader's id, -1 for none."""
    return NO_NODE if leader.leader_id is None else leader.leader_id


def leader_endpoint(leader: KnownLeader, *, listener_name: str) -> Endpoint | None:
    """Return the leader's endpoint on the listener that received the request."""
    return None if leader.leader_id is None else endpoint_named(leader.endpoints, listener_name)


def node_endpoints(
    leader: KnownLeader,
    new: Callable[[int, str, int], Written],
    *,
    listener_name: str,
    is_version_new_enough: bool,
) -> list[Written]:
    """Return the leader's endpoint as the list that a response of that version contains."""
    endpoint = leader_endpoint(leader, listener_name=listener_name)
    if endpoint is None or not is_version_new_enough:
        return []
    return [new(leader_id_of(leader), endpoint.host, endpoint.port)]


class HasEndpoint(Protocol):
    """The endpoint of a node in a response."""

    node_id: int
    host: str
    port: int


def known_leader(
    epoch: int, leader_id: int, endpoints: Sequence[HasEndpoint], *, listener_name: str
) -> KnownLeader:
    """Return the leader in a response; its endpoint gets the name `listener_name`."""
    if leader_id < 0:
        return KnownLeader(epoch)
    found: Endpoints = tuple(
        Endpoint(listener_name, one.host, one.port)
        for one in endpoints
        if one.node_id == leader_id and one.host and 0 < one.port <= _PORT_MAX
    )
    return KnownLeader(epoch, leader_id, found[:1])


class HasLeader(HasPartitionIndex, Protocol):
    """The partition of a response: its error, and who leads."""

    error_code: int
    leader_id: int
    leader_epoch: int


_Answered_co = TypeVar("_Answered_co", bound=HasLeader, covariant=True)


class _QuorumResponse(Protocol[_Answered_co]):
    error_code: int

    @property
    def topics(self) -> Sequence[HasPartitions[_Answered_co]]: ...

    @property
    def node_endpoints(self) -> Sequence[HasEndpoint]: ...


class QuorumAnswer(NamedTuple, Generic[_Answered_co]):
    """The common part of the responses of Vote, BeginQuorumEpoch and EndQuorumEpoch."""

    partition: _Answered_co
    error: Error
    leader: KnownLeader


def read_answer(
    response: _QuorumResponse[_Answered_co], *, listener_name: str
) -> QuorumAnswer[_Answered_co] | RequestFailed:
    """Return what a response says of the metadata partition and its leader."""
    if response.error_code != ErrorCode.NONE:
        return failed(response.error_code)
    partition = only_partition(response.topics)
    if partition is None:
        return misshapen(type(response).__name__)
    leader = known_leader(
        partition.leader_epoch,
        partition.leader_id,
        response.node_endpoints,
        listener_name=listener_name,
    )
    return QuorumAnswer(partition, error_of(partition.error_code), leader)


def error_of(code: int) -> Error:
    """Return the core's error for a code; UNKNOWN_SERVER_ERROR for one that the core lacks."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR


def failed(error_code: int) -> RequestFailed:
    """Return the failure for a response with a top-level error."""
    name = ErrorCode(error_code).name if error_code in ErrorCode.__members__.values() else ""
    return RequestFailed(
        f"the response has error {error_code} {name}".rstrip(),
        lacks_version=error_code == ErrorCode.UNSUPPORTED_VERSION,
        is_denied=error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )


def misshapen(what: str) -> RequestFailed:
    """Return the failure for a response that does not answer the request."""
    return RequestFailed(f"the {what} does not contain the metadata partition")
