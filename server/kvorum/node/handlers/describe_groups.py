"""DescribeGroups (15): states and members of classic groups."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[DescribeGroupsRequest], broker: BrokerServices
) -> Message:
    """Describe each group; those that the client may not know of come first, as in Kafka."""
    body = request.body
    access = request.access
    allowed = {
        group_id: access.allows_on_group(AclOperation.DESCRIBE, group_id)
        for group_id in body.groups
    }
    response = DescribeGroupsResponse(
        groups=[
            _refusal(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for group_id in body.groups
            if not allowed[group_id]
        ]
    )
    for group_id in body.groups:
        if not allowed[group_id]:
            continue
        group = broker.groups.describe_group(request.version, group_id)
        if body.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = access.operations_on_group(group_id)
        response.groups.append(group)
    return response


def _refusal(group_id: str, code: ErrorCode) -> DescribeGroupsResponse.DescribedGroup:
    return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=code)


def _refuse(
    request: DescribeGroupsRequest, error: RequestError, _version: int
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[_refusal(group_id, error.code) for group_id in request.groups]
    )


API: Final = BrokerApi(
    request=DescribeGroupsRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
