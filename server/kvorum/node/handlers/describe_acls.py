"""DescribeAcls (29): there are none to describe without an authorizer."""

from __future__ import annotations

from kvorum.node.errors import CloseConnectionError
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kvorum.wire.primitives import Message

UNKNOWN = 0
NO_AUTHORIZER = "No Authorizer is configured on the broker"


async def on_broker(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Say that access is not controlled here."""
    return _no_authorizer(request)


async def on_controller(request: IncomingRequest, _controller: ControllerServices) -> Message:
    """Say that access is not controlled here."""
    return _no_authorizer(request)


def _no_authorizer(request: IncomingRequest) -> Message:
    body = request.body
    assert isinstance(body, DescribeAclsRequest)
    if UNKNOWN in (
        body.resource_type_filter,
        body.pattern_type_filter,
        body.operation,
        body.permission_type,
    ):
        # Kafka takes such a filter for a request that cannot be read.
        raise CloseConnectionError("DescribeAcls with an unknown element in its filter")
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
