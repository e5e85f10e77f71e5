"""DescribeUserScramCredentials (50): which SCRAM mechanisms users have."""

from __future__ import annotations

from kvorum.broker.views.describe_user_scram_credentials import (
    describe_user_scram_credentials,
)
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeUserScramCredentialsRequest)
    return describe_user_scram_credentials(broker.loader.published, request.body)


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Answer out of what this controller knows to be committed.

    Kafka's controllers list this request but fail it (UNKNOWN_SERVER_ERROR).
    """
    assert isinstance(request.body, DescribeUserScramCredentialsRequest)
    return describe_user_scram_credentials(controller.loader.published, request.body)
