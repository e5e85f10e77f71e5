"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40).

Whoever asks must have authenticated, and not by a token. The controller believes a broker that a
client which it passes on has.
"""

from __future__ import annotations

from kvorum.controller.delegation_tokens import owner_of_new_token
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.principal import ANONYMOUS, USER_TYPE
from kvorum.node.config import NodeConfig, SecurityProtocol
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.dispatch import Answer
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_REQUESTER = 3
NEVER = -1


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Answer:
    """Refuse what a broker can judge; the controller answers the rest."""
    code = _refusal(request, broker.config)
    body = request.body
    if (
        not code
        and isinstance(body, CreateDelegationTokenRequest)
        and any(renewer.principal_type != USER_TYPE for renewer in body.renewers)
    ):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    return await broker.forwarder.forward(request) if not code else _refuse(request, code)


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Refuse who may not ask; the active controller answers."""
    code = _refusal(request, controller.config)
    return await controller.shell.write(request) if not code else _refuse(request, code)


def may_ask_about_tokens(request: IncomingRequest, config: NodeConfig) -> bool:
    """Tell whether the client has authenticated in a way that gives a right to tokens."""
    if request.principal.is_token_authenticated:
        return False
    if request.is_forwarded:
        return True
    listeners = config.bound_listeners
    protocol = next(each.protocol for each in listeners if each.name == request.listener)
    return protocol is not SecurityProtocol.PLAINTEXT and (
        protocol is not SecurityProtocol.SSL or not request.principal.is_same_user(ANONYMOUS)
    )


def _refusal(request: IncomingRequest, config: NodeConfig) -> ErrorCode:
    """Return why the request is refused before anything else is looked at, NONE for no reason."""
    body = request.body
    owner = request.principal
    if isinstance(body, CreateDelegationTokenRequest):
        owner = owner_of_new_token(body, request.principal)
    if not may_ask_about_tokens(request, config):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if not owner.is_same_user(request.principal) and not request.access.allows(
        AclOperation.CREATE_TOKENS, AclResourceType.USER, owner.text
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _refuse(request: IncomingRequest, code: ErrorCode) -> Message:
    body = request.body
    if isinstance(body, RenewDelegationTokenRequest):
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NEVER)
    if not isinstance(body, CreateDelegationTokenRequest):
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NEVER)
    owner = owner_of_new_token(body, request.principal)
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if request.version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = request.principal.type
        response.token_requester_principal_name = request.principal.name
    return response
