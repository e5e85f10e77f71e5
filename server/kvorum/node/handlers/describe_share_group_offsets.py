"""DescribeShareGroupOffsets (90): where share groups go on in partitions (KIP-932).

==========  ======================================================================================
version     brings
==========  ======================================================================================
0           the first one
1           the number of records that are left (KIP-1226)
==========  ======================================================================================
"""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.coroutines import all_of
from kvorum.node.handlers.group_requests import require_on_group
from kvorum.node.handlers.share_requests import demand_share_groups
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kvorum.wire.primitives import Message

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_OFFSET: Final = -1


async def answer(
    request: IncomingRequest[DescribeShareGroupOffsetsRequest], broker: BrokerServices
) -> Message:
    """Describe each group on its own: a refusal of one leaves the others as they are."""
    described = [_described(request, broker, group) for group in request.body.groups]
    return DescribeShareGroupOffsetsResponse(groups=await all_of(broker.runtime, described))


async def _described(
    request: IncomingRequest[DescribeShareGroupOffsetsRequest],
    broker: BrokerServices,
    group: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        demand_share_groups(broker)
        require_on_group(request, AclOperation.DESCRIBE, group.group_id)
    except RequestError as error:
        return DescribeShareGroupOffsetsResponseGroup(group.group_id, error_code=error.code)
    try:
        return await _with_known_topics(request, broker, group)
    except RequestError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group.group_id, error_code=error.code, error_message=error.code.default_message
        )


async def _with_known_topics(
    request: IncomingRequest[DescribeShareGroupOffsetsRequest],
    broker: BrokerServices,
    group: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup:
    """Describe a group; topics that the client may not know of have an error, or are left out."""
    access = request.access
    if group.topics is None:
        found = await broker.share_groups.offsets.describe(group)
        names = [topic.topic_name for topic in found.topics]
        allowed = access.allowed_topics(AclOperation.DESCRIBE, names)
        found.topics = [topic for topic in found.topics if topic.topic_name in allowed]
        return found
    if not group.topics:
        return DescribeShareGroupOffsetsResponseGroup(group.group_id)
    names = [topic.topic_name for topic in group.topics]
    allowed = access.allowed_topics(AclOperation.DESCRIBE, names)
    known = [topic for topic in group.topics if topic.topic_name in allowed]
    wanted = DescribeShareGroupOffsetsRequestGroup(group.group_id, known)
    found = await broker.share_groups.offsets.describe(wanted)
    found.topics += [_denied(topic) for topic in group.topics if topic.topic_name not in allowed]
    return found


def _denied(topic: DescribeShareGroupOffsetsRequestTopic) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=one,
                start_offset=_NO_OFFSET,
                error_code=_DENIED,
                error_message=_DENIED.default_message,
            )
            for one in topic.partitions
        ],
    )


def _refuse(
    request: DescribeShareGroupOffsetsRequest, error: RequestError, _version: int
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(
                group.group_id, error_code=error.code, error_message=error.code.default_message
            )
            for group in request.groups
        ]
    )


API: Final = BrokerApi(
    request=DescribeShareGroupOffsetsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
