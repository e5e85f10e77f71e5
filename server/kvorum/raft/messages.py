"""The requests and responses of the quorum, free of versions and encodings.

The driver translates these from and to Kafka's requests; it checks cluster id and shape before.
Every response contains the leader and epoch that the responder knows, except where the request was
refused before. Fields are given by name. (These are named tuples because so many dataclasses would
delay every start.)
"""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from kvorum.raft.endpoints import Endpoints
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.voter_set import NO_VOTERS, VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class Error(IntEnum):
    """The errors of this protocol, with Kafka's numbers."""

    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    INCONSISTENT_CLUSTER_ID = 104
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    UNKNOWN_SERVER_ERROR = -1


class KnownLeader(NamedTuple):
    """The epoch a replica is in, and the leader and where it listens, as far as it knows."""

    epoch: int
    leader_id: int | None = None
    endpoints: Endpoints = ()


class VoteRequest(NamedTuple):
    """Ask for a vote in `epoch`, or, with `is_pre_vote`, whether one would be given.

    `log_end` is where the candidate's log ends. `voter` is the replica that is asked, None where
    the request names none.
    """

    epoch: int
    replica: ReplicaKey
    voter: ReplicaKey | None
    log_end: OffsetAndEpoch
    is_pre_vote: bool


class VoteResponse(NamedTuple):
    """Report whether the vote is given."""

    error: Error
    leader: KnownLeader
    is_granted: bool = False


class BeginQuorumEpochRequest(NamedTuple):
    """Announce the leader of `epoch` to a voter, with the leader's endpoints.

    Where `endpoints` is empty, the voter takes them from its voter set.
    """

    epoch: int
    leader_id: int
    voter: ReplicaKey | None
    endpoints: Endpoints


class BeginQuorumEpochResponse(NamedTuple):
    """Acknowledge a leader."""

    error: Error
    leader: KnownLeader


class EndQuorumEpochRequest(NamedTuple):
    """Announce to a voter that the leader of `epoch` has resigned; `preferred` are successors."""

    epoch: int
    leader_id: int
    preferred: tuple[ReplicaKey, ...]
    endpoints: Endpoints


class EndQuorumEpochResponse(NamedTuple):
    """Acknowledge a resignation."""

    error: Error
    leader: KnownLeader


class FetchRequest(NamedTuple):
    """Ask for records from `position` on; the fetcher has everything below it durably.

    `replica` is None for a reader that is not a replica. `high_watermark` is the fetcher's: -1
    where it knows none. Where it is None, the request does not contain it, and the fetch is
    answered early only for new records.
    """

    replica: ReplicaKey | None
    epoch: int
    position: OffsetAndEpoch
    max_wait_ms: int
    bytes_max: int
    high_watermark: int | None


class BatchSummary(NamedTuple):
    """The facts of one fetched batch that the core needs; the bytes stay with the driver.

    `voters` and `kraft_versions` are the control records of those kinds, with their offsets.
    """

    base_offset: int
    last_offset: int
    epoch: int
    voters: tuple[tuple[int, VoterSet], ...] = ()
    kraft_versions: tuple[tuple[int, int], ...] = ()


class FetchResponse(NamedTuple):
    """Records, or where the fetcher's log diverges, or the snapshot to fetch instead.

    In a response that this replica sends, the driver reads the records from `read_from` on (at most
    `bytes_max`) into it. In a response from a leader, `batches` describes what the driver found.
    """

    error: Error
    leader: KnownLeader
    high_watermark: int | None = None
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    read_from: int | None = None
    bytes_max: int = 0
    batches: tuple[BatchSummary, ...] = ()


class FetchSnapshotRequest(NamedTuple):
    """Ask for a part of a snapshot, from the byte `position` on."""

    replica: ReplicaKey | None
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    bytes_max: int


class FetchSnapshotResponse(NamedTuple):
    """A part of a snapshot of `size` bytes: `part_size` bytes, which stay with the driver.

    Into a response without error that this replica sends, the driver reads `bytes_max` bytes at
    `position`; without any, it makes the response an error.
    """

    error: Error
    leader: KnownLeader
    snapshot_id: OffsetAndEpoch
    position: int = 0
    size: int = 0
    part_size: int = 0
    bytes_max: int = 0


class DescribeQuorumRequest(NamedTuple):
    """Ask the leader how far every replica is."""


class ReplicaProgress(NamedTuple):
    """A replica's progress; ages are in milliseconds before now, None where it never happened."""

    key: ReplicaKey
    log_end_offset: int | None
    last_fetch_age_ms: float | None
    last_caught_up_age_ms: float | None


class DescribeQuorumResponse(NamedTuple):
    """The leader's view of the quorum."""

    error: Error
    leader: KnownLeader
    high_watermark: int | None = None
    voters: tuple[ReplicaProgress, ...] = ()
    observers: tuple[ReplicaProgress, ...] = ()
    voter_endpoints: VoterSet = NO_VOTERS


class AddRaftVoterRequest(NamedTuple):
    """Ask the leader to make a replica a voter; `voter` is None where the request names none.

    The response comes when the change is committed, or, without `acks_when_committed`, when it is
    appended.
    """

    voter: ReplicaKey | None
    endpoints: Endpoints
    acks_when_committed: bool = True


class AddRaftVoterResponse(NamedTuple):
    """Report the outcome; `message` is Kafka's text."""

    error: Error
    message: str | None = None


class RemoveRaftVoterRequest(NamedTuple):
    """Ask the leader to remove a voter; `voter` is None where the request names none."""

    voter: ReplicaKey | None


class RemoveRaftVoterResponse(NamedTuple):
    """Report the outcome once the change is committed; `message` is Kafka's text."""

    error: Error
    message: str | None = None


class UpdateRaftVoterRequest(NamedTuple):
    """Report a voter's endpoints and supported kraft.versions to the leader of `epoch`.

    `is_for_this_cluster` is left to the core, because even the refusal names the leader.
    """

    epoch: int
    voter: ReplicaKey | None
    endpoints: Endpoints
    kraft_version_min: int
    kraft_version_max: int
    is_for_this_cluster: bool = True


class UpdateRaftVoterResponse(NamedTuple):
    """Report whether the update was accepted."""

    error: Error
    leader: KnownLeader


class ApiVersionsRequest(NamedTuple):
    """Ask a node, before it is recorded as a voter, which kraft.versions it can work at."""


class ApiVersionsResponse(NamedTuple):
    """The lowest and highest kraft.version a node can work at; None where it names none.

    `error_name` is Kafka's name of the error, None without one.
    """

    kraft_versions: tuple[int, int] | None = None
    error_name: str | None = None


class RequestFailed(NamedTuple):
    """No response came: the peer is unreachable, broke off, or refused the whole request.

    `lacks_version` is set where the peer does not support the version that the request needs,
    `is_peer_gone` where no process listens at its address any more: the peer's process has ended.
    `is_denied` is set where this replica's user is not authorized for requests of the quorum.
    """

    reason: str
    lacks_version: bool = False
    is_peer_gone: bool = False
    is_denied: bool = False


Request: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | DescribeQuorumRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | ApiVersionsRequest
)
LeaderAwareResponse: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | DescribeQuorumResponse
    | UpdateRaftVoterResponse
)
Response: TypeAlias = (
    LeaderAwareResponse | AddRaftVoterResponse | RemoveRaftVoterResponse | ApiVersionsResponse
)
