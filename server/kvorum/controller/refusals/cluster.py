"""Refusals of requests about brokers, controllers and features."""

from __future__ import annotations

from kvorum.metadata.request_error import RequestError
from kvorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
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
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def register_broker(
    _: BrokerRegistrationRequest, error: RequestError
) -> BrokerRegistrationResponse:
    """Refuse BrokerRegistration."""
    return BrokerRegistrationResponse(error_code=error.code)


def broker_heartbeat(_: BrokerHeartbeatRequest, error: RequestError) -> BrokerHeartbeatResponse:
    """Refuse BrokerHeartbeat."""
    return BrokerHeartbeatResponse(error_code=error.code)


def unregister_broker(_: UnregisterBrokerRequest, error: RequestError) -> UnregisterBrokerResponse:
    """Refuse UnregisterBroker."""
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message_or_default)


def register_controller(
    _: ControllerRegistrationRequest, error: RequestError
) -> ControllerRegistrationResponse:
    """Refuse ControllerRegistration."""
    return ControllerRegistrationResponse(
        error_code=error.code, error_message=error.code.default_message
    )


def describe_cluster(_: DescribeClusterRequest, error: RequestError) -> DescribeClusterResponse:
    """Refuse DescribeCluster."""
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


def update_features(_: UpdateFeaturesRequest, error: RequestError) -> UpdateFeaturesResponse:
    """Refuse UpdateFeatures."""
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


def allocate_producer_ids(
    _: AllocateProducerIdsRequest, error: RequestError
) -> AllocateProducerIdsResponse:
    """Refuse AllocateProducerIds."""
    return AllocateProducerIdsResponse(error_code=error.code)
