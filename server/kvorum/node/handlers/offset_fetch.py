"""OffsetFetch (9): the offsets that groups have committed.

1. The client needs a permission on each group, whose coordinator must be this broker.
2. All offsets of a group, or those of some topics, are returned. Topics that the client may not
   describe are left out of the former, and refused among the latter.
3. Where offsets have to be stable, one that a transaction may yet change is refused
   (UNSTABLE_OFFSET_COMMIT).

==========  ======================================================================================
version     brings
==========  ======================================================================================
1           the first one that Kafka 4 serves; an error stands at each partition
2           an error of the whole; null for all topics
5           the leader epoch of a committed offset (KIP-320)
6           the flexible encoding
7           stable offsets (KIP-447)
8           several groups in one request (KIP-709)
9           the member that asks and its epoch (KIP-848)
10          topic ids in place of names
==========  ======================================================================================
"""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.group_requests import asked, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID

FIRST_VERSION_WITH_ERROR: Final = 2
FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
NO_OFFSET: Final = -1


async def answer(request: IncomingRequest[OffsetFetchRequest], broker: BrokerServices) -> Message:
    """Return the offsets of each group, or its error."""
    return _response(
        [await _group(one, request, broker) for one in _groups(request.body, request.version)],
        request.version,
    )


async def _group(
    group: OffsetFetchRequestGroup,
    request: IncomingRequest[OffsetFetchRequest],
    broker: BrokerServices,
) -> OffsetFetchResponseGroup:
    try:
        require_on_group(request, AclOperation.DESCRIBE, group.group_id)
        if group.topics is None:
            return await _all_topics(group, request, broker)
        return await _some_topics(group, group.topics, request, broker)
    except RequestError as error:
        return _refusal(group, error.code, request.version)


async def _all_topics(
    group: OffsetFetchRequestGroup,
    request: IncomingRequest[OffsetFetchRequest],
    broker: BrokerServices,
) -> OffsetFetchResponseGroup:
    """Return all offsets; topics that the client may not know of are left out."""
    response = await _offsets(group, request, broker)
    ids = broker.loader.published.topics.ids
    topics: list[OffsetFetchResponseTopics] = []
    for topic in response.topics:
        if not request.access.allows_on_topic(AclOperation.DESCRIBE, topic.name):
            continue
        if request.version >= FIRST_VERSION_WITH_TOPIC_IDS:
            topic.topic_id = ids.get(topic.name, ZERO_UUID)
            if topic.topic_id == ZERO_UUID:
                continue
        topics.append(topic)
    response.topics = topics
    return response


async def _some_topics(
    group: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopics],
    request: IncomingRequest[OffsetFetchRequest],
    broker: BrokerServices,
) -> OffsetFetchResponseGroup:
    """Return the offsets that are asked for; refused topics come last."""
    has_ids = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
    by_id = broker.loader.published.topics.by_id
    accepted: list[OffsetFetchRequestTopics] = []
    refused: list[OffsetFetchResponseTopics] = []
    for topic in topics:
        if has_ids:
            found = by_id.get(topic.topic_id)
            topic.name = "" if found is None else found.name
        if has_ids and not topic.name:
            refused.append(_refused_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not request.access.allows_on_topic(AclOperation.DESCRIBE, topic.name):
            refused.append(_refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            accepted.append(topic)
    wanted = OffsetFetchRequestGroup(group.group_id, group.member_id, group.member_epoch, accepted)
    response = await _offsets(wanted, request, broker)
    response.topics = [*response.topics, *refused]
    return response


async def _offsets(
    group: OffsetFetchRequestGroup,
    request: IncomingRequest[OffsetFetchRequest],
    broker: BrokerServices,
) -> OffsetFetchResponseGroup:
    if request.body.require_stable:
        return await asked(broker.runtime, broker.groups.fetch_stable_offsets, group)
    return broker.groups.fetch_offsets(group)


def _groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """Return the groups, in the form of the versions that have several."""
    if version >= FIRST_VERSION_WITH_GROUPS:
        return request.groups
    if request.topics is None:
        return [OffsetFetchRequestGroup(request.group_id, topics=None)]
    topics = [
        OffsetFetchRequestTopics(one.name, ZERO_UUID, one.partition_indexes)
        for one in request.topics
    ]
    return [OffsetFetchRequestGroup(request.group_id, topics=topics)]


def _response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _refused_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic.name,
        topic.topic_id,
        [
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _refusal(
    group: OffsetFetchRequestGroup, code: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    if version >= FIRST_VERSION_WITH_ERROR:
        return OffsetFetchResponseGroup(group.group_id, error_code=code)
    topics = [_refused_topic(topic, code) for topic in group.topics or ()]
    return OffsetFetchResponseGroup(group.group_id, topics)


def _refuse(request: OffsetFetchRequest, error: RequestError, version: int) -> OffsetFetchResponse:
    groups = [_refusal(group, error.code, version) for group in _groups(request, version)]
    return _response(groups, version)


API: Final = BrokerApi(
    request=OffsetFetchRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
