"""DescribeAcls (29): the access control entries that a filter is about."""

from __future__ import annotations

from kvorum.broker.views.describe_acls import describe_acls
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_acls import DescribeAclsRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    return _describe(request, broker.loader.published)


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Answer out of what this controller knows to be committed."""
    return _describe(request, controller.loader.published)


def _describe(request: IncomingRequest, image: MetadataImage) -> Message:
    assert isinstance(request.body, DescribeAclsRequest)
    if not request.access.is_restricted:
        raise RequestError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    return describe_acls(image, request.body)
