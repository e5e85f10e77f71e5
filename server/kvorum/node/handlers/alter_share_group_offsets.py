"""AlterShareGroupOffsets (91): share groups without members begin elsewhere (KIP-932)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, refused_by_message_or_default
from kvorum.node.handlers.group_requests import require_on_group
from kvorum.node.handlers.share_requests import demand_share_groups
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.shield import shield
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[AlterShareGroupOffsetsRequest], broker: BrokerServices
) -> Message:
    """Alter offsets; the coordinator is asked even if nothing is left for it."""
    demand_share_groups(broker)
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    topics = broker.loader.published.topics
    answered: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
    accepted: list[AlterShareGroupOffsetsRequestTopic] = []
    for topic in body.topics:
        found = topics.by_name(topic.topic_name)
        if not request.access.allows_on_topic(AclOperation.READ, topic.topic_name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif found is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            accepted.append(topic)
            continue
        refused = AlterShareGroupOffsetsResponseTopic(topic.topic_name)
        if found is not None:
            refused.topic_id = found.id
        answered.setdefault(topic.topic_name, refused).partitions.extend(
            AlterShareGroupOffsetsResponsePartition(one.partition_index, code, code.default_message)
            for one in topic.partitions
        )
    wanted = AlterShareGroupOffsetsRequest(body.group_id, accepted)
    response = await shield(broker.runtime, broker.share_groups.alter_offsets(wanted))
    for altered in response.responses:
        first = answered.setdefault(altered.topic_name, altered)
        if first is not altered:
            first.partitions += altered.partitions
    return AlterShareGroupOffsetsResponse(responses=list(answered.values()))


API: Final = BrokerApi(
    request=AlterShareGroupOffsetsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_message_or_default(AlterShareGroupOffsetsResponse),
)
