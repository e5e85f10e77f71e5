"""DescribeGroups (15): states and members of classic groups."""

from functools import partial
from typing import Final

from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.group_requests import describe_each
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[DescribeGroupsRequest], broker: BrokerServices
) -> Message:
    """Describe each group that the client may know of."""
    body = request.body
    return DescribeGroupsResponse(
        groups=describe_each(
            request,
            body.groups,
            describe=partial(broker.groups.describe_group, request.version),
            refuse=_refusal,
            with_operations=body.include_authorized_operations,
        )
    )


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
