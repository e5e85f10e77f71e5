"""DescribeAcls (29): there are none to describe without an authorizer."""

from __future__ import annotations

from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_acls import DescribeAclsResponse
from kvorum.wire.primitives import Message

NO_AUTHORIZER = "No Authorizer is configured on the broker"


async def on_broker(_request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Say that access is not controlled here."""
    return _no_authorizer()


async def on_controller(_request: IncomingRequest, _controller: ControllerServices) -> Message:
    """Say that access is not controlled here."""
    return _no_authorizer()


def _no_authorizer() -> Message:
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
