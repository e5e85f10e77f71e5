"""DescribeClientQuotas (48): the quotas of users, clients and addresses."""

from __future__ import annotations

from kvorum.broker.views.describe_client_quotas import (
    describe_client_quotas,
)
from kvorum.metadata.request_error import RequestError
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeClientQuotasRequest)
    try:
        return describe_client_quotas(broker.loader.published, request.body)
    except RequestError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
