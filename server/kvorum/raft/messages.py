"""What replicas say to each other, free of versions and encodings.

The shell translates these from and to Kafka's requests; it has checked cluster id and shape before.
Every response tells which leader and epoch the responder knows, if it got as far as looking.
Fields are given by name. (Named tuples: to make as many dataclasses would delay every start.)
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from kvorum.raft.basics import Endpoints, OffsetAndEpoch, ReplicaKey
from kvorum.raft.voter_set import NO_VOTERS, VoterSet


class Error(IntEnum):
    """Kafka's numbers for the errors that concern this protocol."""

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

    `log_end` is where the asker's log ends. `voter` is who is asked, None where it is not said.
    """

    epoch: int
    replica: ReplicaKey
    voter: ReplicaKey | None
    log_end: OffsetAndEpoch
    is_pre_vote: bool


class VoteResponse(NamedTuple):
    """Say whether the vote is given."""

    error: Error
    leader: KnownLeader
    is_granted: bool = False


class BeginQuorumEpochRequest(NamedTuple):
    """Tell a voter who leads `epoch`, and where that one listens (nowhere: look it up)."""

    epoch: int
    leader_id: int
    voter: ReplicaKey | None
    endpoints: Endpoints


class BeginQuorumEpochResponse(NamedTuple):
    """Acknowledge a leader."""

    error: Error
    leader: KnownLeader


class EndQuorumEpochRequest(NamedTuple):
    """Tell a voter that the leader of `epoch` has resigned, and who had better come next."""

    epoch: int
    leader_id: int
    preferred: tuple[ReplicaKey, ...]
    endpoints: Endpoints


class EndQuorumEpochResponse(NamedTuple):
    """Acknowledge a resignation."""

    error: Error
    leader: KnownLeader


class FetchRequest(NamedTuple):
    """Ask for records from `position` on; whatever is below it, the asker has durably.

    `replica` is None for readers that are no replicas. `high_watermark` is the asker's: -1 where it
    knows none, None where it did not say, in which case it is only woken for new records.
    """

    replica: ReplicaKey | None
    epoch: int
    position: OffsetAndEpoch
    max_wait_ms: int
    bytes_max: int
    high_watermark: int | None


class BatchSummary(NamedTuple):
    """What the core needs to know of one fetched batch; the bytes stay with the shell.

    `voters` and `kraft_versions` are the control records of those kinds, with their offsets.
    """

    base_offset: int
    last_offset: int
    epoch: int
    voters: tuple[tuple[int, VoterSet], ...] = ()
    kraft_versions: tuple[tuple[int, int], ...] = ()


class FetchResponse(NamedTuple):
    """Records, or where the asker's log diverges, or the snapshot to fetch instead.

    As an answer, `read_from` (with `bytes_max`) is what the shell reads into the response; as a
    response from a leader, `batches` says what the shell found in it.
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
    """A part of a snapshot of `size` bytes; `part_size` bytes of it, which stay with the shell.

    As an answer without error, the shell reads `bytes_max` bytes at `position` into the response,
    or makes it an error where there are none.
    """

    error: Error
    leader: KnownLeader
    snapshot_id: OffsetAndEpoch
    position: int = 0
    size: int = 0
    part_size: int = 0
    bytes_max: int = 0


class DescribeQuorumRequest(NamedTuple):
    """Ask the leader how everyone is doing."""


class ReplicaProgress(NamedTuple):
    """How far a replica is; ages are in milliseconds before now, None where it never happened."""

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
    """Ask the leader to make a replica a voter; `voter` is None where it is not said who.

    The answer comes when the change is committed, or, without `acks_when_committed`, when it is
    appended.
    """

    voter: ReplicaKey | None
    endpoints: Endpoints
    acks_when_committed: bool = True


class AddRaftVoterResponse(NamedTuple):
    """Say what came of it; `message` is Kafka's text."""

    error: Error
    message: str | None = None


class RemoveRaftVoterRequest(NamedTuple):
    """Ask the leader that a replica be no voter any more; None where it is not said which."""

    voter: ReplicaKey | None


class RemoveRaftVoterResponse(NamedTuple):
    """Say what came of it, once it is committed; `message` is Kafka's text."""

    error: Error
    message: str | None = None


class UpdateRaftVoterRequest(NamedTuple):
    """Tell the leader of `epoch` where a voter listens, and which kraft.versions it can work at.

    `is_for_this_cluster` is left to the core, because even the refusal tells who leads.
    """

    epoch: int
    voter: ReplicaKey | None
    endpoints: Endpoints
    kraft_version_min: int
    kraft_version_max: int
    is_for_this_cluster: bool = True


class UpdateRaftVoterResponse(NamedTuple):
    """Say whether that was noted."""

    error: Error
    leader: KnownLeader


class ApiVersionsRequest(NamedTuple):
    """Ask a node that is to become a voter which kraft.versions it can work at."""


class ApiVersionsResponse(NamedTuple):
    """The kraft.versions a node can work at, lowest and highest; None where it does not say.

    `error_name` is Kafka's name of what went wrong.
    """

    kraft_versions: tuple[int, int] | None = None
    error_name: str | None = None


class RequestFailed(NamedTuple):
    """No response came: the peer cannot be reached, broke off, or refused the whole request.

    `lacks_version` is set where the peer does not speak the request as it would have to be written,
    `is_peer_gone` where nobody listens at its address any more: its process has ended.
    """

    reason: str
    lacks_version: bool = False
    is_peer_gone: bool = False


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
