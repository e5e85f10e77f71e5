"""DeleteGroups (42): groups without members, and all their offsets or share partitions' states."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.shield import shield
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[DeleteGroupsRequest], broker: BrokerServices) -> Message:
    """Delete each group once; those that the client may not delete come last, as in Kafka."""
    allowed: list[str] = []
    refused: list[str] = []
    for group_id in dict.fromkeys(request.body.groups_names):
        is_allowed = request.access.allows_on_group(AclOperation.DELETE, group_id)
        (allowed if is_allowed else refused).append(group_id)
    try:
        results = await shield(broker.runtime, broker.share_groups.delete_groups(allowed))
    except RequestError as error:
        results = _refusals(allowed, error.code)
    return DeleteGroupsResponse(
        results=[*results, *_refusals(refused, ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    )


def _refusals(
    group_ids: list[str], code: ErrorCode
) -> list[DeleteGroupsResponse.DeletableGroupResult]:
    return [DeleteGroupsResponse.DeletableGroupResult(group_id, code) for group_id in group_ids]


def _refuse(
    request: DeleteGroupsRequest, error: RequestError, _version: int
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=_refusals(request.groups_names, error.code))


API: Final = BrokerApi(
    request=DeleteGroupsRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
