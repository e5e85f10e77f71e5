"""DescribeCluster (60) on a controller (KIP-919): lists the controllers."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import BY_HANDLER, RequestError, refused_by_message
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

ENDPOINT_TYPES: Final = {1: "BROKER", 2: "CONTROLLER"}
CONTROLLER_ENDPOINT: Final = 2


def describe_cluster(
    image: MetadataImage, request: DescribeClusterRequest, context: ControllerRequestContext
) -> ControllerResult[DescribeClusterResponse]:
    """Return the registered controllers that have the listener of the request."""
    version = image.features.metadata_version
    if version is None or not version.supports_controller_registration:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Direct-to-controller communication is not supported with the current MetadataVersion.",
        )
    context.access.require_on_cluster(AclOperation.ALTER, request=request.NAME)
    _check_endpoint_type(request.endpoint_type, context.api_version)
    nodes: list[DescribeClusterResponse.DescribeClusterBroker] = []
    for controller_id in sorted(image.cluster.controllers):
        endpoint = image.cluster.controllers[controller_id].endpoint(context.listener)
        if endpoint is not None:
            nodes.append(
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=controller_id, host=endpoint.host, port=endpoint.port, rack=None
                )
            )
    is_leader_known = any(node.broker_id == context.leader_id for node in nodes)
    response = DescribeClusterResponse(
        cluster_id=context.settings.cluster_id,
        controller_id=context.leader_id if is_leader_known else -1,
        brokers=nodes,
        endpoint_type=CONTROLLER_ENDPOINT,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = context.access.operations_on_cluster()
    return ControllerResult(response)


def _check_endpoint_type(endpoint_type: int, api_version: int) -> None:
    if endpoint_type == CONTROLLER_ENDPOINT:
        return
    if endpoint_type not in ENDPOINT_TYPES:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    else:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            f"The request was sent to an endpoint of type {ENDPOINT_TYPES[CONTROLLER_ENDPOINT]}, "
            f"but we wanted an endpoint of type {ENDPOINT_TYPES[endpoint_type]}"
        )
    raise RequestError(ErrorCode.INVALID_REQUEST if api_version == 0 else code, message)


API: Final = ControllerApi(
    request=DescribeClusterRequest,
    permission=BY_HANDLER,
    decide=describe_cluster,
    refuse=refused_by_message(DescribeClusterResponse),
    is_for_any_controller=True,
)
