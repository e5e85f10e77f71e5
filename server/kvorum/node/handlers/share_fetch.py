"""ShareFetch (78): a member of a share group acquires records, and acknowledges earlier ones.

1. The share session says which partitions are asked for; the request begins, goes on with, or ends
   it.
2. What the request acknowledges is applied, and written to the share coordinators.
3. Beside that, records that no member has are read and acquired for the member, once there is
   enough or the time is up.
4. One response has both. A session that ends releases what its member still holds afterwards.

==========  ======================================================================================
version     brings
==========  ======================================================================================
1           the first one that Kafka serves without share groups being unstable
2           renewal of locks, and a limit of records that is kept exactly (KIP-1206, KIP-1222)
==========  ======================================================================================
"""

from collections.abc import Container, Mapping, Sequence
from typing import Final

from kvorum.broker.share_partition.acquisition import ShareAcquireMode, ShareAcquirer
from kvorum.broker.share_session.context import ReadSharePartition, ShareFetchContext
from kvorum.broker.share_session.session import FINAL_EPOCH, ShareSessionKey
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.share_fetch.share_fetch import AcknowledgeResult, ShareFetch, rotated
from kvorum.node.coroutines import Promise, Task, sleep
from kvorum.node.handlers.current_leader import CurrentLeaders
from kvorum.node.handlers.share_requests import (
    FIRST_VERSION_WITH_RENEWAL,
    NOT_LED_HERE,
    demand_member,
    demand_share_groups,
    each_partition,
    lock_duration_ms,
    name_of,
    readable_topics,
    sorted_acknowledgements,
)
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[ShareFetchRequest], broker: BrokerServices) -> Message:
    """Acquire records for a member of a group, and take its acknowledgements."""
    demand_share_groups(broker)
    member = demand_member(request)
    body = request.body
    _check_renewal(request)
    topics = broker.loader.published.topics
    listed = list(each_partition(body.topics, topics))
    has_acknowledgements = any(batches for _, batches in listed)
    context = await _context(
        request, broker, member, topics, has_acknowledgements=has_acknowledgements
    )
    asked = (*context.partitions, *(partition for partition, _ in listed))
    allowed = readable_topics(asked, request)
    manager = broker.share_partitions
    acknowledged: Mapping[TopicIdPartition, AcknowledgeResult] = {}
    acknowledging: Promise[Mapping[TopicIdPartition, AcknowledgeResult]] | None = None
    if has_acknowledgements:
        wanted = sorted_acknowledgements(body.topics, request, topics, readable=allowed)
        acknowledged = wanted.refused
        if wanted.accepted:
            acknowledging = Promise(broker.runtime)
            Task(manager.acknowledge(member, wanted.accepted), acknowledging.settle)
    read: list[ReadSharePartition] = []
    if not _renews(request):
        readable, refused = _sorted_out(context.partitions, allowed, topics)
        read = [*await _read(readable, request, broker, member, topics), *refused]
    if acknowledging is not None:
        acknowledged = {**await acknowledging.result(), **acknowledged}
    response = _response(read, context, request, broker)
    _add_acknowledgements(response, acknowledged)
    response.acquisition_lock_timeout_ms = lock_duration_ms(manager, member)
    if body.share_session_epoch == FINAL_EPOCH:
        manager.release_session(member)
    return response


def _renews(request: IncomingRequest[ShareFetchRequest]) -> bool:
    return request.version >= FIRST_VERSION_WITH_RENEWAL and request.body.is_renew_ack


def _check_renewal(request: IncomingRequest[ShareFetchRequest]) -> None:
    """Raise RequestError for a request that renews locks and asks for records all the same."""
    body = request.body
    limits = {
        "maxBytes": body.max_bytes,
        "minBytes": body.min_bytes,
        "maxRecords": body.max_records,
        "maxWaitMs": body.max_wait_ms,
    }
    if _renews(request) and any(limits.values()):
        named = "".join(f"{name} must be set to 0, " for name, value in limits.items() if value)
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{named}if isRenewAck is true.")


async def _context(
    request: IncomingRequest[ShareFetchRequest],
    broker: BrokerServices,
    member: ShareSessionKey,
    topics: TopicsImage,
    *,
    has_acknowledgements: bool,
) -> ShareFetchContext:
    """Return what the request is about; raises RequestError, after a wait where there is no room.

    A client that finds no room for its session comes again at once: as in Kafka, it is held back.
    """
    body = request.body
    forgotten = [
        TopicIdPartition(topic.topic_id, index, name_of(topics, topic.topic_id))
        for topic in body.forgotten_topics_data
        for index in topic.partitions
    ]
    try:
        return broker.share_partitions.new_context(
            member,
            body.share_session_epoch,
            request.session.disconnect,
            listed=[one for one, _ in each_partition(body.topics, topics)],
            forgotten=forgotten,
            has_acknowledgements=has_acknowledgements,
        )
    except RequestError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await sleep(broker.runtime, max(body.max_wait_ms, 0))
        raise


async def _read(
    readable: Sequence[TopicIdPartition],
    request: IncomingRequest[ShareFetchRequest],
    broker: BrokerServices,
    member: ShareSessionKey,
    topics: TopicsImage,
) -> list[ReadSharePartition]:
    """Return the records that were acquired."""
    body = request.body
    if not readable:
        return []
    await broker.hosting.wait_until_led(
        (topics.by_id[one.topic_id], one.partition) for one in readable
    )
    max_bytes = min(
        body.max_bytes,
        broker.config.network.fetch_bytes_max,
        broker.throttling.fetch_bytes_max(request),
    )
    manager = broker.share_partitions
    fetch = ShareFetch(
        group_id=member.group_id,
        acquirer=ShareAcquirer(member.member_id, _acquire_mode(body), body.batch_size),
        partitions=rotated(readable, body.share_session_epoch),
        max_records=body.max_records,
        max_wait_ms=body.max_wait_ms,
        min_bytes=min(body.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=manager.configs.config(member.group_id).isolation,
    )
    return await manager.fetch(fetch)


def _acquire_mode(body: ShareFetchRequest) -> ShareAcquireMode:
    try:
        return ShareAcquireMode(body.share_acquire_mode)
    except ValueError as unknown:
        # As in Kafka, whose table of modes has no such number.
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR) from unknown


def _sorted_out(
    partitions: Sequence[TopicIdPartition], allowed: Container[str], topics: TopicsImage
) -> tuple[list[TopicIdPartition], list[ReadSharePartition]]:
    """Return the partitions that may be read, and the refusals of the others."""
    readable: list[TopicIdPartition] = []
    refused: list[ReadSharePartition] = []
    for one in partitions:
        known = topics.by_id.get(one.topic_id)
        if one.topic is None:
            refused.append(_refused(one, ErrorCode.UNKNOWN_TOPIC_ID))
        elif one.topic not in allowed:
            refused.append(_refused(one, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif known is None or one.partition not in known.partitions:
            refused.append(_refused(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            readable.append(one)
    return readable, refused


def _refused(partition: TopicIdPartition, code: ErrorCode) -> ReadSharePartition:
    data = ShareFetchResponse.PartitionData(
        partition_index=partition.partition, error_code=code, records=b""
    )
    return ReadSharePartition(partition, data)


def _response(
    read: Sequence[ReadSharePartition],
    context: ShareFetchContext,
    request: IncomingRequest[ShareFetchRequest],
    broker: BrokerServices,
) -> ShareFetchResponse:
    """Return the response with what was read, unless the client is beyond its quota."""
    leaders = CurrentLeaders(broker.loader.published, request.listener)
    for partition, data in read:
        if data.error_code in NOT_LED_HERE:
            leader = leaders.of("", partition.topic_id, partition.partition)
            data.current_leader = ShareFetchResponse.LeaderIdAndEpoch(*leader)
    throttle_time_ms = broker.throttling.throttle_fetch(
        request, lambda: context.response_size(read, version=request.version)
    )
    if throttle_time_ms > 0:
        response = context.throttled_response(throttle_time_ms)
    else:
        response = context.response(read)
    _count_bytes_out(response, broker)
    response.node_endpoints = [
        ShareFetchResponse.NodeEndpoint(*endpoint) for endpoint in leaders.endpoints
    ]
    return response


def _count_bytes_out(response: ShareFetchResponse, broker: BrokerServices) -> None:
    topics = broker.loader.published.topics
    for topic in response.responses:
        name = name_of(topics, topic.topic_id)
        size = sum(len(one.records or b"") for one in topic.partitions)
        if name is not None:
            broker.topic_stats.on_bytes_out(name, size_bytes=size, is_follower=False)


def _add_acknowledgements(
    response: ShareFetchResponse, acknowledged: Mapping[TopicIdPartition, AcknowledgeResult]
) -> None:
    """Say of each partition what became of its acknowledgements; add those that were not read."""
    by_key = {partition.key: result for partition, result in acknowledged.items()}
    topics = {topic.topic_id: topic for topic in response.responses}
    for topic in response.responses:
        for data in topic.partitions:
            result = by_key.pop((topic.topic_id, data.partition_index), None)
            if result is not None:
                data.acknowledge_error_code = result.code
                data.acknowledge_error_message = result.message
    for (topic_id, index), result in by_key.items():
        known = topics.get(topic_id)
        if known is None:
            known = ShareFetchResponse.ShareFetchableTopicResponse(topic_id, [])
            topics[topic_id] = known
            response.responses.append(known)
        known.partitions.append(
            ShareFetchResponse.PartitionData(
                partition_index=index,
                acknowledge_error_code=result.code,
                acknowledge_error_message=result.message,
                records=b"",
            )
        )


def _refuse(_: ShareFetchRequest, error: RequestError, _version: int) -> ShareFetchResponse:
    # As in Kafka, the text of the error stays behind.
    return ShareFetchResponse(error_code=error.code)


API: Final = BrokerApi(
    request=ShareFetchRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
