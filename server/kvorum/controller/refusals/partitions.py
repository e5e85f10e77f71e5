"""Refusals of requests about partitions and their leaders."""

from __future__ import annotations

from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponseReassignablePartitionResponse,
    AlterPartitionReassignmentsResponseReassignableTopicResponse,
)
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from kvorum.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ElectLeadersResponseReplicaElectionResult,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponseOngoingPartitionReassignment,
    ListPartitionReassignmentsResponseOngoingTopicReassignment,
)


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, error: RequestError
) -> AlterPartitionReassignmentsResponse:
    """Refuse AlterPartitionReassignments."""
    response = AlterPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.message
    )
    for topic in request.topics:
        partitions = [
            AlterPartitionReassignmentsResponseReassignablePartitionResponse(
                partition_index=partition.partition_index,
                error_code=error.code,
                error_message=error.message,
            )
            for partition in topic.partitions
        ]
        response.responses.append(
            AlterPartitionReassignmentsResponseReassignableTopicResponse(
                name=topic.name, partitions=partitions
            )
        )
    return response


def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, error: RequestError
) -> ListPartitionReassignmentsResponse:
    """Refuse ListPartitionReassignments."""
    response = ListPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.message
    )
    for topic in request.topics or ():
        partitions = [
            ListPartitionReassignmentsResponseOngoingPartitionReassignment(partition_index=index)
            for index in topic.partition_indexes
        ]
        response.topics.append(
            ListPartitionReassignmentsResponseOngoingTopicReassignment(
                name=topic.name, partitions=partitions
            )
        )
    return response


def elect_leaders(
    request: ElectLeadersRequest, error: RequestError, *, api_version: int
) -> ElectLeadersResponse:
    """Refuse ElectLeaders; version 0 has error codes for partitions only."""
    is_told = api_version > 0
    response = ElectLeadersResponse(error_code=error.code if is_told else ErrorCode.NONE)
    for topic in request.topic_partitions or ():
        results = [
            ElectLeadersResponsePartitionResult(
                partition_id=index, error_code=error.code, error_message=error.message
            )
            for index in topic.partitions
        ]
        response.replica_election_results.append(
            ElectLeadersResponseReplicaElectionResult(topic=topic.topic, partition_result=results)
        )
    return response


def alter_partition(_: AlterPartitionRequest, error: RequestError) -> AlterPartitionResponse:
    """Refuse AlterPartition."""
    return AlterPartitionResponse(error_code=error.code)


def assign_replicas_to_directories(
    _: AssignReplicasToDirsRequest, error: RequestError
) -> AssignReplicasToDirsResponse:
    """Refuse AssignReplicasToDirs."""
    return AssignReplicasToDirsResponse(error_code=error.code)
