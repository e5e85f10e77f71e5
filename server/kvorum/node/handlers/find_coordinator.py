"""FindCoordinator (10): refused; groups and transactions need partitions that carry records."""

from __future__ import annotations

from types import MappingProxyType

from kvorum.metadata.access import Access
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.node.handlers.no_data import ERROR, MESSAGE
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MANY_KEYS = 4
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
"""What DESCRIBE is needed on to ask for a coordinator, and how its lack is told."""


async def on_broker(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Refuse each key: because the client may not know it, or else because nobody coordinates."""
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
            # Older versions have Kafka tell the reason, newer ones do not.
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
