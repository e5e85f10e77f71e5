"""DescribeClientQuotas (48): the quotas of users, clients and addresses."""

from __future__ import annotations

from kvorum.broker.views.describe_client_quotas import (
    describe_client_quotas,
)
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
from kvorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeClientQuotasRequest)
    return describe_client_quotas(broker.loader.published, request.body)
