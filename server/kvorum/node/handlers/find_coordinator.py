"""FindCoordinator (10): refused; groups and transactions need partitions with records."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.standard_authorizer import Access
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MANY_KEYS = 4
ERROR = ErrorCode.INVALID_REQUEST
"""Clients do not retry it; its default text mentions "an incompatible broker", which is true."""
MESSAGE = "This broker coordinates neither groups nor transactions."
GROUP, TRANSACTION, SHARE = range(3)
NEEDED = MappingProxyType(
    {
        GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        TRANSACTION: (
            AclResourceType.TRANSACTIONAL_ID,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    }
)
"""The resource that needs DESCRIBE for each type of coordinator, and the error without it."""


async def answer(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Refuse each key: for lack of a permission, or else because there is no coordinator."""
    body = request.body
    assert isinstance(body, FindCoordinatorRequest)
    if body.key_type == SHARE:
        request.access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=body.NAME)
    if request.version < FIRST_VERSION_WITH_MANY_KEYS:
        code, message = _refusal(body.key, body.key_type, request.access)
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    response = FindCoordinatorResponse()
    for key in body.coordinator_keys:
        code, message = _refusal(key, body.key_type, request.access)
        if code != ERROR:
            # Kafka sends the reason in older versions only.
            message = ""
        response.coordinators.append(
            FindCoordinatorResponseCoordinator(
                key=key, node_id=-1, port=-1, error_code=code, error_message=message
            )
        )
    return response


def _refusal(key: str, key_type: int, access: Access) -> tuple[ErrorCode, str | None]:
    if key_type in NEEDED:
        kind, code = NEEDED[key_type]
        if not access.allows(AclOperation.DESCRIBE, kind, key):
            return code, code.default_message
    return ERROR, MESSAGE


def _refuse(
    request: FindCoordinatorRequest, error: RequestError, version: int
) -> FindCoordinatorResponse:
    """Refuse every key with the text of the code, as Kafka does."""
    code, message = error.code, error.code.default_message
    if version < FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponseCoordinator(
                key=key, node_id=-1, port=-1, error_code=code, error_message=message
            )
            for key in request.coordinator_keys
        ]
    )


API: Final = BrokerApi(
    key=ApiKey.FIND_COORDINATOR,
    request=FindCoordinatorRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
