"""The controller's front door: a request goes in, records and the answer come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from kvorum.controller.allocate_producer_ids import allocate_producer_ids
from kvorum.controller.alter_partition import alter_partition
from kvorum.controller.alter_reassignments import alter_partition_reassignments
from kvorum.controller.assign_directories import assign_replicas_to_directories
from kvorum.controller.broker_heartbeat import broker_heartbeat
from kvorum.controller.broker_registration import register_broker
from kvorum.controller.client_quotas import alter_client_quotas
from kvorum.controller.configs.incremental_alter import incremental_alter_configs
from kvorum.controller.configs.legacy_alter import alter_configs
from kvorum.controller.controller_registration import register_controller
from kvorum.controller.create_partitions import create_partitions
from kvorum.controller.create_topics import create_topics
from kvorum.controller.delete_topics import delete_topics
from kvorum.controller.describe_cluster import describe_cluster
from kvorum.controller.elect_leaders import elect_leaders
from kvorum.controller.list_reassignments import list_partition_reassignments
from kvorum.controller.refusals import REFUSALS
from kvorum.controller.result import ControllerResult
from kvorum.controller.scram import alter_user_scram_credentials
from kvorum.controller.settings import ControllerContext
from kvorum.controller.unregister_broker import unregister_broker
from kvorum.controller.update_features import update_features
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kvorum.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from kvorum.wire.messages.alter_configs import AlterConfigsRequest
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kvorum.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.broker_registration import BrokerRegistrationRequest
from kvorum.wire.messages.controller_registration import ControllerRegistrationRequest
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kvorum.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest
from kvorum.wire.messages.update_features import UpdateFeaturesRequest
from kvorum.wire.primitives import Message

Handle: TypeAlias = Callable[[MetadataImage, Message, ControllerContext], ControllerResult[Message]]
Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


def handle(
    image: MetadataImage, request: Message, context: ControllerContext
) -> ControllerResult[Message]:
    """Return what the active controller does with `request`, `image` being its pending state.

    A request that is refused as a whole is answered in its own response with the error Kafka
    would give, without records. Raises `KeyError` for a request the controller does not handle.
    """
    handle_request = HANDLERS[type(request)]
    try:
        return handle_request(image, request, context)
    except RequestError as error:
        return ControllerResult(error_response(request, error, api_version=context.api_version))


def error_response(request: Message, error: RequestError, *, api_version: int) -> Message:
    """Return the response that refuses the whole of `request` with `error`.

    This is also what a controller that is not active answers with (NOT_CONTROLLER).
    """
    return REFUSALS[type(request)](request, error, api_version)


def _typed(
    request_class: type[Request],
    handle_request: Callable[
        [MetadataImage, Request, ControllerContext], ControllerResult[Response]
    ],
) -> tuple[type[Message], Handle]:
    """Return the entry of `HANDLERS` that hands requests of `request_class` on."""

    def checked(
        image: MetadataImage, request: Message, context: ControllerContext
    ) -> ControllerResult[Message]:
        assert isinstance(request, request_class)
        return handle_request(image, request, context)

    return request_class, checked


HANDLERS: Final[Mapping[type[Message], Handle]] = MappingProxyType(
    dict(
        [
            _typed(AllocateProducerIdsRequest, allocate_producer_ids),
            _typed(AlterClientQuotasRequest, alter_client_quotas),
            _typed(AlterConfigsRequest, alter_configs),
            _typed(AlterPartitionReassignmentsRequest, alter_partition_reassignments),
            _typed(AlterPartitionRequest, alter_partition),
            _typed(AlterUserScramCredentialsRequest, alter_user_scram_credentials),
            _typed(AssignReplicasToDirsRequest, assign_replicas_to_directories),
            _typed(BrokerHeartbeatRequest, broker_heartbeat),
            _typed(BrokerRegistrationRequest, register_broker),
            _typed(ControllerRegistrationRequest, register_controller),
            _typed(CreatePartitionsRequest, create_partitions),
            _typed(CreateTopicsRequest, create_topics),
            _typed(DeleteTopicsRequest, delete_topics),
            _typed(DescribeClusterRequest, describe_cluster),
            _typed(ElectLeadersRequest, elect_leaders),
            _typed(IncrementalAlterConfigsRequest, incremental_alter_configs),
            _typed(ListPartitionReassignmentsRequest, list_partition_reassignments),
            _typed(UnregisterBrokerRequest, unregister_broker),
            _typed(UpdateFeaturesRequest, update_features),
        ]
    )
)
"""What each request that the controller serves does, by its class."""
