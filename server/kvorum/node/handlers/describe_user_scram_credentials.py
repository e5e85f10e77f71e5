"""DescribeUserScramCredentials (50): which SCRAM mechanisms users have."""

from __future__ import annotations

from kvorum.broker.views.describe_user_scram_credentials import (
    describe_user_scram_credentials,
)
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeUserScramCredentialsRequest)
    return describe_user_scram_credentials(broker.loader.published, request.body)
