"""The answer to each request when the whole of it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kvorum.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
)
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponseReassignablePartitionResponse,
    AlterPartitionReassignmentsResponseReassignableTopicResponse,
)
from kvorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseAlterUserScramCredentialsResult,
)
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kvorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
)
from kvorum.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicResult,
)
from kvorum.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
)
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ElectLeadersResponseReplicaElectionResult,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponseOngoingPartitionReassignment,
    ListPartitionReassignmentsResponseOngoingTopicReassignment,
)
from kvorum.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID

Refuse: TypeAlias = Callable[[Message, RequestError, int], Message]
Request = TypeVar("Request", bound=Message)


def _create_topics(request: CreateTopicsRequest, error: RequestError) -> Message:
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponseCreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
            for topic in request.topics
        ]
    )


def _delete_topics(request: DeleteTopicsRequest, error: RequestError) -> Message:
    named = [(topic.name, topic.topic_id) for topic in request.topics]
    named += [(name, ZERO_UUID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponseDeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code
            )
            for name, topic_id in named
        ]
    )


def _create_partitions(request: CreatePartitionsRequest, error: RequestError) -> Message:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponseCreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
            for topic in request.topics
        ]
    )


def _alter_configs(request: AlterConfigsRequest, error: RequestError) -> Message:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponseAlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, error: RequestError
) -> Message:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, error: RequestError
) -> Message:
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


def _list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, error: RequestError
) -> Message:
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


def _elect_leaders(request: ElectLeadersRequest, error: RequestError) -> Message:
    response = ElectLeadersResponse(error_code=error.code)
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


def _alter_client_quotas(request: AlterClientQuotasRequest, error: RequestError) -> Message:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=error.code,
                error_message=error.code.default_message,
                entity=[
                    AlterClientQuotasResponseEntityData(part.entity_type, part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, error: RequestError
) -> Message:
    users = {deletion.name for deletion in request.deletions}
    users |= {upsertion.name for upsertion in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponseAlterUserScramCredentialsResult(
                user=user, error_code=error.code, error_message=error.message
            )
            for user in sorted(users)
        ]
    )


def _update_features(_: UpdateFeaturesRequest, error: RequestError) -> Message:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


def _unregister_broker(_: UnregisterBrokerRequest, error: RequestError) -> Message:
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message_or_default)


def _describe_cluster(_: DescribeClusterRequest, error: RequestError) -> Message:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


def _register_controller(_: ControllerRegistrationRequest, error: RequestError) -> Message:
    return ControllerRegistrationResponse(
        error_code=error.code, error_message=error.code.default_message
    )


def _alter_partition(_: AlterPartitionRequest, error: RequestError) -> Message:
    return AlterPartitionResponse(error_code=error.code)


def _allocate_producer_ids(_: AllocateProducerIdsRequest, error: RequestError) -> Message:
    return AllocateProducerIdsResponse(error_code=error.code)


def _broker_heartbeat(_: BrokerHeartbeatRequest, error: RequestError) -> Message:
    return BrokerHeartbeatResponse(error_code=error.code)


def _register_broker(_: BrokerRegistrationRequest, error: RequestError) -> Message:
    return BrokerRegistrationResponse(error_code=error.code)


def _assign_replicas_to_directories(_: AssignReplicasToDirsRequest, error: RequestError) -> Message:
    return AssignReplicasToDirsResponse(error_code=error.code)


def _typed(
    request_class: type[Request], refuse: Callable[[Request, RequestError], Message]
) -> tuple[type[Message], Refuse]:
    """Return the entry of `REFUSALS` that hands requests of `request_class` to `refuse`."""

    def checked(request: Message, error: RequestError, api_version: int) -> Message:
        assert isinstance(request, request_class)
        response = refuse(request, error)
        if isinstance(response, ElectLeadersResponse) and api_version == 0:
            # The first version has error codes for partitions only.
            response.error_code = ErrorCode.NONE
        return response

    return request_class, checked


REFUSALS: Final[Mapping[type[Message], Refuse]] = MappingProxyType(
    dict(
        [
            _typed(AllocateProducerIdsRequest, _allocate_producer_ids),
            _typed(AlterClientQuotasRequest, _alter_client_quotas),
            _typed(AlterConfigsRequest, _alter_configs),
            _typed(AlterPartitionReassignmentsRequest, _alter_partition_reassignments),
            _typed(AlterPartitionRequest, _alter_partition),
            _typed(AlterUserScramCredentialsRequest, _alter_user_scram_credentials),
            _typed(AssignReplicasToDirsRequest, _assign_replicas_to_directories),
            _typed(BrokerHeartbeatRequest, _broker_heartbeat),
            _typed(BrokerRegistrationRequest, _register_broker),
            _typed(ControllerRegistrationRequest, _register_controller),
            _typed(CreatePartitionsRequest, _create_partitions),
            _typed(CreateTopicsRequest, _create_topics),
            _typed(DeleteTopicsRequest, _delete_topics),
            _typed(DescribeClusterRequest, _describe_cluster),
            _typed(ElectLeadersRequest, _elect_leaders),
            _typed(IncrementalAlterConfigsRequest, _incremental_alter_configs),
            _typed(ListPartitionReassignmentsRequest, _list_partition_reassignments),
            _typed(UnregisterBrokerRequest, _unregister_broker),
            _typed(UpdateFeaturesRequest, _update_features),
        ]
    )
)
"""How each request is refused, by its class."""
