"""DescribeDelegationToken (41): the tokens a client may know about."""

from __future__ import annotations

from kvorum.broker.views.describe_delegation_tokens import describe_delegation_tokens
from kvorum.metadata.delegation_tokens import TokenSecrets
from kvorum.node.handlers.delegation_tokens import may_ask_about_tokens
from kvorum.node.handlers.views import view_of, view_of_controller
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    if not may_ask_about_tokens(request, broker.config):
        return _not_allowed()
    assert isinstance(request.body, DescribeDelegationTokenRequest)
    secrets = TokenSecrets(broker.config.security.tokens)
    view = view_of(request, broker)
    return describe_delegation_tokens(broker.loader.published, request.body, view, secrets)


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Answer out of what this controller knows to be committed.

    Kafka's controllers list this request but fail it (UNKNOWN_SERVER_ERROR).
    """
    if not may_ask_about_tokens(request, controller.config):
        return _not_allowed()
    assert isinstance(request.body, DescribeDelegationTokenRequest)
    secrets = TokenSecrets(controller.config.security.tokens)
    view = view_of_controller(request, controller)
    return describe_delegation_tokens(controller.loader.published, request.body, view, secrets)


def _not_allowed() -> Message:
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )
