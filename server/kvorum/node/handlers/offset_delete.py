"""OffsetDelete (47): offsets of topics that a group consumes no more."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, refused_by_code
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.handlers.group_requests import asked, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[OffsetDeleteRequest], broker: BrokerServices) -> Message:
    """Delete offsets; the coordinator is asked even if nothing is left for it."""
    body = request.body
    require_on_group(request, AclOperation.DELETE, body.group_id)
    topics = broker.loader.published.topics
    refused: dict[str, OffsetDeleteResponseTopic] = {}
    accepted: list[OffsetDeleteRequestTopic] = []
    for topic in body.topics:
        found = topics.by_name(topic.name)
        if not request.access.allows_on_topic(AclOperation.READ, topic.name):
            _refuse(refused, topic.name, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        known, unknown = _sorted(topic, found)
        if found is None or unknown:
            _refuse(refused, topic.name, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if known:
            accepted.append(OffsetDeleteRequestTopic(topic.name, known))
    wanted = OffsetDeleteRequest(body.group_id, accepted)
    response = await asked(broker.runtime, broker.groups.delete_offsets, wanted)
    if response.error_code == ErrorCode.NONE and refused:
        response.topics = _merged(refused, response.topics)
    return response


def _sorted(
    topic: OffsetDeleteRequestTopic, found: TopicImage | None
) -> tuple[list[OffsetDeleteRequestPartition], list[OffsetDeleteRequestPartition]]:
    """Return the partitions that there are, and those that there are not."""
    if found is None:
        return [], topic.partitions
    known = [one for one in topic.partitions if found.partitions.get(one.partition_index)]
    unknown = [one for one in topic.partitions if not found.partitions.get(one.partition_index)]
    return known, unknown


def _refuse(
    refused: dict[str, OffsetDeleteResponseTopic],
    name: str,
    partitions: list[OffsetDeleteRequestPartition],
    code: ErrorCode,
) -> None:
    refused.setdefault(name, OffsetDeleteResponseTopic(name, [])).partitions += [
        OffsetDeleteResponsePartition(partition.partition_index, code) for partition in partitions
    ]


def _merged(
    refused: dict[str, OffsetDeleteResponseTopic], answered: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    """Return both; a topic with refused and with other partitions is one entry."""
    for topic in answered:
        known = refused.get(topic.name)
        if known is None:
            refused[topic.name] = topic
        else:
            known.partitions += topic.partitions
    return list(refused.values())


API: Final = BrokerApi(
    request=OffsetDeleteRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(OffsetDeleteResponse),
)
