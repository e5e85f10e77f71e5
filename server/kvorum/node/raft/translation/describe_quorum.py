"""DescribeQuorum (55); a replica answers it and never sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvorum.controller.quorum_description import ReplicaState
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_default_message
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.primitives import Message
from kvorum.wire.quorum_reassignment_tag import add_reassignment
from kvorum.wire.uuid_text import ZERO_UUID

if TYPE_CHECKING:
    from kvorum.controller.quorum_reassignment.plan import ReassignmentDescription

_NODES_VERSION = 2
_UNKNOWN = -1


def read_request(
    request: DescribeQuorumRequest,
) -> core.DescribeQuorumRequest | DescribeQuorumResponse:
    """Return the core's form of a request, or its refusal."""
    if common.only_partition(request.topics) is None:
        return refusal(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return core.DescribeQuorumRequest()


def refusal(request: DescribeQuorumRequest, error: ErrorCode) -> DescribeQuorumResponse:
    """Return the response that has the same error for every requested partition."""
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponse.TopicData(
                topic.topic_name,
                [
                    DescribeQuorumResponse.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=error,
                        error_message=error.default_message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def write_answer(
    request: DescribeQuorumRequest,
    answer: core.DescribeQuorumResponse,
    *,
    version: int,
    now_ms: int,
) -> DescribeQuorumResponse:
    """Return Kafka's form of a response of the core; `now_ms` is the wall clock."""
    if answer.error is not core.Error.NONE:
        return refusal(request, ErrorCode(answer.error))
    known = answer.high_watermark
    partition = DescribeQuorumResponse.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        leader_id=common.leader_id_of(answer.leader),
        leader_epoch=answer.leader.epoch,
        high_watermark=_UNKNOWN if known is None else known,
        current_voters=[_state(one, version=version, now_ms=now_ms) for one in answer.voters],
        observers=[_state(one, version=version, now_ms=now_ms) for one in answer.observers],
    )
    response = DescribeQuorumResponse(
        topics=[DescribeQuorumResponse.TopicData(CLUSTER_METADATA_TOPIC, [partition])]
    )
    if version >= _NODES_VERSION:
        response.nodes = [
            DescribeQuorumResponse.Node(
                voter.key.id,
                [
                    DescribeQuorumResponse.Listener(one.name, one.host, one.port)
                    for one in voter.endpoints
                ],
            )
            for voter in answer.voter_endpoints.voters
        ]
    return response


def _state(
    progress: core.ReplicaProgress, *, version: int, now_ms: int
) -> DescribeQuorumResponse.ReplicaState:
    end = progress.log_end_offset
    state = DescribeQuorumResponse.ReplicaState(
        replica_id=progress.key.id,
        log_end_offset=_UNKNOWN if end is None else end,
        last_fetch_timestamp=_time(progress.last_fetch_age_ms, now_ms),
        last_caught_up_timestamp=_time(progress.last_caught_up_age_ms, now_ms),
    )
    if version >= _NODES_VERSION:
        state.replica_directory_id = common.directory_id_of(progress.key)
    return state


def _time(age_ms: float | None, now_ms: int) -> int:
    return _UNKNOWN if age_ms is None else now_ms - int(age_ms)


def complete(response: Message, reassignment: ReassignmentDescription) -> None:
    """Add the target voters, and what is waited for, to a response that is not a refusal."""
    assert isinstance(response, DescribeQuorumResponse)
    shown = QuorumReassignment(
        targets=[_target(one, reassignment.now_ms) for one in reassignment.targets],
        block_reason=reassignment.reason_code,
        block_text=reassignment.block_text,
    )
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.NONE:
                add_reassignment(partition, shown)


def _target(state: ReplicaState, now_ms: int) -> QuorumReassignment.Target:
    end = state.log_end_offset
    return QuorumReassignment.Target(
        replica_id=state.key.id,
        replica_directory_id=state.key.directory_id or ZERO_UUID,
        log_end_offset=_UNKNOWN if end is None else end,
        last_fetch_timestamp=_time(state.last_fetch_age_ms, now_ms),
    )


API: Final = RaftApi(
    request=DescribeQuorumRequest,
    permission=AclOperation.DESCRIBE,
    refuse=refused_by_default_message(DescribeQuorumResponse),
    complete=complete,
)
