"""DescribeCluster (60) on a broker: the brokers of the cluster."""

from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.broker.views.partitions import named_controller
from kvorum.metadata.api import NONE, refused_by_message
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKER_ENDPOINT: Final = 1
ENDPOINT_TYPES: Final = {1: "BROKER", 2: "CONTROLLER"}
NO_CONTROLLER: Final = -1


def describe_cluster(
    image: MetadataImage, request: DescribeClusterRequest, view: BrokerView
) -> DescribeClusterResponse:
    """List the brokers that have the listener; fenced ones only if the request includes them."""
    if request.endpoint_type != BROKER_ENDPOINT:
        return _wrong_endpoint_type(request.endpoint_type, view.api_version)
    brokers: list[DescribeClusterResponse.DescribeClusterBroker] = []
    for broker in image.cluster.sorted_brokers():
        endpoint = broker.endpoint(view.listener)
        if endpoint is not None and (not broker.is_fenced or request.include_fenced_brokers):
            brokers.append(
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=broker.id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.is_fenced,
                )
            )
    controller_id = named_controller(image.cluster, view.quorum_leader_id)
    is_listed = any(broker.broker_id == controller_id for broker in brokers)
    response = DescribeClusterResponse(
        cluster_id=view.cluster_id,
        controller_id=controller_id if is_listed else NO_CONTROLLER,
        brokers=brokers,
        endpoint_type=BROKER_ENDPOINT,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = view.access.operations_on_cluster()
    return response


def _wrong_endpoint_type(endpoint_type: int, api_version: int) -> DescribeClusterResponse:
    if endpoint_type in ENDPOINT_TYPES:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            f"The request was sent to an endpoint of type {ENDPOINT_TYPES[BROKER_ENDPOINT]}, "
            f"but we wanted an endpoint of type {ENDPOINT_TYPES[endpoint_type]}"
        )
    else:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(
        error_code=ErrorCode.INVALID_REQUEST if api_version == 0 else code, error_message=message
    )


API: Final = ViewApi(
    request=DescribeClusterRequest,
    permission=NONE,
    answer=describe_cluster,
    refuse=refused_by_message(DescribeClusterResponse),
)
