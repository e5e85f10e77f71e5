"""The requests that state, replace and clear target voters, and those that take a step (KIP-642).

They are the requests of an operator.
"""

from collections.abc import Sequence
from typing import TypeAlias

from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Reached,
    RemoveVoter,
)
from kvorum.metadata.config_operation import Operation
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.metadata.voters import TARGET_VOTERS, TargetVoters, target_voters_text
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

VoterChange: TypeAlias = AddVoter | RemoveVoter
VoterRequest: TypeAlias = AddRaftVoterRequest | RemoveRaftVoterRequest
VoterResponse: TypeAlias = AddRaftVoterResponse | RemoveRaftVoterResponse


def request_of(step: VoterChange, *, cluster_id: str) -> VoterRequest:
    """Return the request that takes a step; it is answered once the change is committed."""
    node_id, directory_id = step.key.id, step.key.directory_id or ZERO_UUID
    if isinstance(step, RemoveVoter):
        return RemoveRaftVoterRequest(cluster_id, node_id, directory_id)
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[
            AddRaftVoterRequest.Listener(one.listener, one.host, one.port)
            for one in step.registration.listeners
        ],
    )


def refusal_of(step: VoterChange, response: VoterResponse) -> Blocked | None:
    """Return why the leader has not changed the voters, None if it has."""
    return _refusal(step, response.error_code, response.error_message)


def refusal_to_clear(step: Reached, response: IncrementalAlterConfigsResponse) -> Blocked | None:
    """Return why the leader has not cleared the target voters, None if it has."""
    for one in response.responses:
        if one.error_code != ErrorCode.NONE:
            return _refusal(step, one.error_code, one.error_message)
    return None


def _refusal(step: VoterChange | Reached, code: int, text: str | None) -> Blocked | None:
    if code == ErrorCode.NONE:
        return None
    return Blocked(BlockReason.REFUSED, f"the leader refuses to {step}: {text or f'error {code}'}")


def reassignment_request(replicas: Sequence[int] | None) -> AlterPartitionReassignmentsRequest:
    """Return the request for voters by their ids; with None it cancels the target voters."""
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=CLUSTER_METADATA_PARTITION,
        replicas=None if replicas is None else list(replicas),
    )
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
        CLUSTER_METADATA_TOPIC, [partition]
    )
    return AlterPartitionReassignmentsRequest(topics=[topic])


def configuration_request(targets: TargetVoters | None) -> IncrementalAlterConfigsRequest:
    """Return the request for voters by ids and directories; with None it clears the targets.

    It clears those that there are when the active controller reads it.
    """
    config = IncrementalAlterConfigsRequest.AlterableConfig(
        TARGET_VOTERS,
        config_operation=Operation.DELETE if targets is None else Operation.SET,
        value=None if targets is None else target_voters_text(targets),
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(*CLUSTER_RESOURCE, [config])
    return IncrementalAlterConfigsRequest([resource])
