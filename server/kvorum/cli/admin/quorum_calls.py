"""Calls that describe and change the metadata quorum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kvorum.cli.admin.client import Call
from kvorum.cli.admin.errors import CallFailedError, failed, refusal
from kvorum.metadata.address import Address
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.quorum_reassignment_tag import reassignment_in


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """The name and address of a voter's listener."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.listener}://{Address(self.host, self.port)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The progress of a replica; times are milliseconds since 1970, None where unknown."""

    replica_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentInfo:
    """The target voters of the quorum, and what the reassignment waits for (KIP-642).

    A target of which no replica is known has the zero directory and the log end offset -1.
    `block_reason` is 0 while there is progress, and `block_text` is empty.
    """

    targets: tuple[ReplicaState, ...]
    block_reason: int
    block_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumInfo:
    """The state of the quorum as its leader reports it.

    `reassignment` is None while none is wanted, and for a leader that does not know of them.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    endpoints: Mapping[int, tuple[VoterEndpoint, ...]]
    reassignment: ReassignmentInfo | None = None

    @property
    def leader(self) -> ReplicaState | None:
        """The leader's own state, None where the leader is not a voter."""
        return next((voter for voter in self.voters if voter.replica_id == self.leader_id), None)


def add_voter_call(
    *, voter_id: int, directory_id: bytes, endpoints: Sequence[VoterEndpoint]
) -> Call[AddRaftVoterResponse, None]:
    """Return the call that makes a controller a voter."""

    def request(timeout_ms: int) -> AddRaftVoterRequest:
        listeners = [
            AddRaftVoterRequest.Listener(one.listener, one.host, one.port) for one in endpoints
        ]
        return AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=timeout_ms,
            voter_id=voter_id,
            voter_directory_id=directory_id,
            listeners=listeners,
        )

    return Call(
        name="addRaftVoter",
        request=request,
        response_class=AddRaftVoterResponse,
        read=_check_change,
        controller_codes=lambda response: (response.error_code,),
    )


def remove_voter_call(*, voter_id: int, directory_id: bytes) -> Call[RemoveRaftVoterResponse, None]:
    """Return the call that removes a controller from the voters."""
    return Call(
        name="removeRaftVoter",
        request=lambda _: RemoveRaftVoterRequest(
            cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id
        ),
        response_class=RemoveRaftVoterResponse,
        read=_check_change,
        controller_codes=lambda response: (response.error_code,),
    )


def _check_change(response: AddRaftVoterResponse | RemoveRaftVoterResponse) -> None:
    if response.error_code != ErrorCode.NONE:
        raise final(refusal(response.error_code, response.error_message))


def final(error: CallFailedError) -> CallFailedError:
    """Return the error as one that is not retriable, whatever its code is."""
    return CallFailedError(replace(error.failure, is_retriable=False))


def _error_codes(response: DescribeQuorumResponse) -> set[int]:
    partitions = (one for topic in response.topics for one in topic.partitions)
    return {response.error_code, *(partition.error_code for partition in partitions)}


def _quorum_info(response: DescribeQuorumResponse) -> QuorumInfo:
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, response.error_message)
    partition = _only_partition(response)
    if partition.error_code != ErrorCode.NONE:
        raise refusal(partition.error_code, partition.error_message)
    return QuorumInfo(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=tuple(map(_replica_state, partition.current_voters)),
        observers=tuple(map(_replica_state, partition.observers)),
        endpoints={
            node.node_id: tuple(
                VoterEndpoint(one.name, one.host, one.port) for one in node.listeners
            )
            for node in response.nodes
        },
        reassignment=_reassignment_info(partition),
    )


def _reassignment_info(partition: DescribeQuorumResponse.PartitionData) -> ReassignmentInfo | None:
    reassignment = reassignment_in(partition)
    if reassignment is None:
        return None
    targets = tuple(
        ReplicaState(
            replica_id=target.replica_id,
            directory_id=target.replica_directory_id,
            log_end_offset=target.log_end_offset,
            last_fetch_ms=_known(target.last_fetch_timestamp),
            last_caught_up_ms=None,
        )
        for target in reassignment.targets
    )
    return ReassignmentInfo(
        targets=targets, block_reason=reassignment.block_reason, block_text=reassignment.block_text
    )


def _only_partition(response: DescribeQuorumResponse) -> DescribeQuorumResponse.PartitionData:
    """Return the one expected partition; refuse a response about any other."""
    if len(response.topics) != 1:
        raise _unexpected(f"{len(response.topics)} topics", 1)
    topic = response.topics[0]
    if topic.topic_name != CLUSTER_METADATA_TOPIC:
        raise _unexpected(f"a topic with name {topic.topic_name}", CLUSTER_METADATA_TOPIC)
    if len(topic.partitions) != 1:
        count = len(topic.partitions)
        raise _unexpected(f"a topic {CLUSTER_METADATA_TOPIC} with {count} partitions", 1)
    partition = topic.partitions[0]
    if partition.partition_index != 0:
        raise _unexpected(f"a single partition with index {partition.partition_index}", 0)
    return partition


def _unexpected(received: str, expected: object) -> CallFailedError:
    problem = f"DescribeMetadataQuorum received {received} when {expected} was expected"
    return failed("UnknownServerException", problem)


def _replica_state(state: DescribeQuorumResponse.ReplicaState) -> ReplicaState:
    return ReplicaState(
        replica_id=state.replica_id,
        directory_id=state.replica_directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_ms=_known(state.last_fetch_timestamp),
        last_caught_up_ms=_known(state.last_caught_up_timestamp),
    )


def _known(time_ms: int) -> int | None:
    return None if time_ms == -1 else time_ms


DESCRIBE_QUORUM: Final = Call(
    name="describeMetadataQuorum",
    request=lambda _: DescribeQuorumRequest(
        [
            DescribeQuorumRequest.TopicData(
                CLUSTER_METADATA_TOPIC, [DescribeQuorumRequest.PartitionData()]
            )
        ]
    ),
    response_class=DescribeQuorumResponse,
    read=_quorum_info,
    controller_codes=_error_codes,
)
"""Reads the state of the quorum."""
