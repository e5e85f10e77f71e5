"""ConsumerGroupDescribe (69): states, members and assignments of consumer groups (KIP-848).

Version 1 (KIP-1099): members have a type, as those of the classic protocol may be among them.
"""

from collections.abc import Iterator
from typing import Final

from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.group_requests import (
    demand_consumer_protocol,
    describe_each,
    without_hidden_topics,
)
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ConsumerGroupDescribeRequest], broker: BrokerServices
) -> Message:
    """Describe each group that the client may know of, with all topics of its assignments."""
    demand_consumer_protocol(broker)
    body = request.body
    groups = describe_each(
        request,
        body.group_ids,
        describe=broker.groups.describe_consumer_group,
        refuse=_refusal,
        with_operations=body.include_authorized_operations,
    )
    shown = without_hidden_topics(
        groups, request.access, topics_of=_assigned_topics, refuse=_refusal
    )
    return ConsumerGroupDescribeResponse(groups=shown)


def _assigned_topics(group: ConsumerGroupDescribeResponse.DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name


def _refusal(
    group_id: str, code: ErrorCode, message: str | None = None
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=code, error_message=message
    )


def _refuse(
    request: ConsumerGroupDescribeRequest, error: RequestError, _version: int
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[_refusal(group_id, error.code) for group_id in request.group_ids]
    )


API: Final = BrokerApi(
    request=ConsumerGroupDescribeRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
