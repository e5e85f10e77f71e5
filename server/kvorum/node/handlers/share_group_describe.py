"""ShareGroupDescribe (77): states, members and assignments of share groups (KIP-932)."""

from collections.abc import Iterator
from typing import Final

from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.group_requests import describe_each, without_hidden_topics
from kvorum.node.handlers.share_requests import demand_share_groups
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ShareGroupDescribeRequest], broker: BrokerServices
) -> Message:
    """Describe each group that the client may know of, with all topics of its assignments."""
    demand_share_groups(broker)
    body = request.body
    groups = describe_each(
        request,
        body.group_ids,
        describe=broker.share_groups.describe_group,
        refuse=_refusal,
        with_operations=body.include_authorized_operations,
    )
    shown = without_hidden_topics(
        groups, request.access, topics_of=_assigned_topics, refuse=_refusal
    )
    return ShareGroupDescribeResponse(groups=shown)


def _assigned_topics(group: ShareGroupDescribeResponse.DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for topic in member.assignment.topic_partitions:
            yield topic.topic_name


def _refusal(
    group_id: str, code: ErrorCode, message: str | None = None
) -> ShareGroupDescribeResponse.DescribedGroup:
    return ShareGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=code, error_message=message
    )


def _refuse(
    request: ShareGroupDescribeRequest, error: RequestError, _version: int
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[_refusal(group_id, error.code) for group_id in request.group_ids]
    )


API: Final = BrokerApi(
    request=ShareGroupDescribeRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
