"""ListOffsets (2): the partitions that this broker leads, and the metadata topic where readable.

1. A topic that the client may not describe is refused, and so is a partition that is named twice.
   The logs of partitions that were created just now are waited for.
2. A special timestamp stands for a place: -1 the end, -2 and -4 the start, -3 the record with the
   largest timestamp; -5 and -6 are about tiered storage, and find nothing.
3. Any other one stands for the first record with that timestamp or a later one.
4. A consumer sees the log up to the high watermark, or to the last stable offset. While a new
   leader does not know the high watermark of its epoch, it cannot answer yet (KIP-207).
5. The replica id -2 asks any replica for what its own log has.

==========  ======================================================================================
version     brings
==========  ======================================================================================
1           one offset with its timestamp; the first one that Kafka 4 serves
2           isolation levels
4           the leader epoch, in the request and in the response (KIP-320)
5           OFFSET_NOT_AVAILABLE, for which older clients get LEADER_NOT_AVAILABLE (KIP-207)
6           the flexible encoding
7           the timestamp -3 (KIP-734)
8           the timestamp -4 (KIP-405)
9           the timestamp -5 (KIP-1005)
10          a time limit for tiered storage (KIP-1075)
11          the timestamp -6 (KIP-1023)
==========  ======================================================================================
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kvorum.broker.fetch_isolation import IsolationLevel, readable_end
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.node.broker.metadata_topic import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
)
from kvorum.node.coroutines import in_thread
from kvorum.node.handlers.merged_topics import last_requested
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.errors import StorageError
from kvorum.storage.log.read_moment import ReadMoment
from kvorum.storage.topic_log.timestamp_and_offset import TimestampAndOffset
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError, InvalidRecordError
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.primitives import Message

_log = logging.getLogger(__name__)

CONSUMER_ID: Final = -1
"""The replica id in the request of a consumer; others may read to the end of the log."""
DEBUGGING_ID: Final = -2
"""The replica id of what looks at the log of any replica."""
FIRST_VERSION_WITH_EPOCH = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE: Final = 5
FIRST_VERSIONS: Mapping[int, int] = MappingProxyType(
    {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
)
"""The first version in which each special timestamp may be requested."""


async def answer(request: IncomingRequest[ListOffsetsRequest], broker: BrokerServices) -> Message:
    """Answer for the metadata topic, and for the partitions that this broker leads."""
    body = request.body
    allowed = _allowed_topics(body, request.access, broker)
    counts = Counter(
        (topic.name, asked.partition_index) for topic in body.topics for asked in topic.partitions
    )
    hosting = broker.hosting
    described = (
        (topic.name, asked.partition_index)
        for topic in body.topics
        if topic.name in allowed
        for asked in topic.partitions
    )
    await hosting.wait_until_led(hosting.known(described))
    response = ListOffsetsResponse()
    for topic in _merged(topic for topic in body.topics if topic.name in allowed):
        response.topics.append(await _topic(topic, counts, request, broker))
    response.topics += [
        _refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for topic in body.topics
        if topic.name not in allowed
    ]
    return response


def _allowed_topics(
    body: ListOffsetsRequest, access: Access, broker: BrokerServices
) -> frozenset[str]:
    """Return the topics that the client may describe; the metadata is described by the cluster."""
    names = [topic.name for topic in body.topics]
    if broker.metadata_topic is None:
        return access.allowed_topics(AclOperation.DESCRIBE, names)
    may_read_metadata = access.allows_on_cluster(AclOperation.DESCRIBE)
    others = (name for name in names if name != CLUSTER_METADATA_TOPIC)
    allowed = access.allowed_topics(AclOperation.DESCRIBE, others)
    return allowed | {CLUSTER_METADATA_TOPIC} if may_read_metadata else allowed


async def _topic(
    topic: ListOffsetsRequest.ListOffsetsTopic,
    counts: Counter[tuple[str, int]],
    request: IncomingRequest[ListOffsetsRequest],
    broker: BrokerServices,
) -> ListOffsetsResponse.ListOffsetsTopicResponse:
    partitions = [
        await _partition(topic.name, asked, request, broker) for asked in topic.partitions
    ]
    # As in Kafka, a partition that is asked about twice is refused once.
    return ListOffsetsResponse.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=partition.partition_index, error_code=ErrorCode.INVALID_REQUEST
            )
            if counts[topic.name, partition.partition_index] > 1
            else partition
            for partition in partitions
        ],
    )


def _merged(
    topics: Iterable[ListOffsetsRequest.ListOffsetsTopic],
) -> list[ListOffsetsRequest.ListOffsetsTopic]:
    asked = last_requested(
        ((topic.name, topic.partitions) for topic in topics),
        lambda requested: requested.partition_index,
    )
    return [ListOffsetsRequest.ListOffsetsTopic(*each) for each in asked.items()]


def _has_version(timestamp: int, version: int) -> bool:
    """Return whether a timestamp, or the place that it stands for, is known in a version."""
    return timestamp >= 0 or version >= FIRST_VERSIONS.get(timestamp, version + 1)


def _refused_topic(
    topic: ListOffsetsRequest.ListOffsetsTopic, code: ErrorCode
) -> ListOffsetsResponse.ListOffsetsTopicResponse:
    return ListOffsetsResponse.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=asked.partition_index, error_code=code
            )
            for asked in topic.partitions
        ],
    )


async def _partition(
    name: str,
    asked: ListOffsetsRequest.ListOffsetsPartition,
    request: IncomingRequest[ListOffsetsRequest],
    broker: BrokerServices,
) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
    answered = ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index=asked.partition_index
    )
    try:
        if not _has_version(asked.timestamp, request.version):
            raise RequestError.with_default_message(ErrorCode.UNSUPPORTED_VERSION)
        served = broker.metadata_topic
        if served is None or name != CLUSTER_METADATA_TOPIC:
            found = await _in_replica(name, asked, request, broker)
        else:
            found = await served.partition(asked.partition_index).find_offset(asked.timestamp)
    except (RequestError, LeaderRefusesError) as error:
        answered.error_code = error.code
        return answered
    except StorageError:
        answered.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return answered
    except CorruptBatchError as error:
        _log.error("%s-%d: %s", name, asked.partition_index, error)
        is_named = isinstance(error, InvalidRecordError)
        answered.error_code = error.error_code if is_named else ErrorCode.UNKNOWN_SERVER_ERROR
        return answered
    if found is not None:
        answered.offset, answered.timestamp = found.offset, found.timestamp
        if request.version >= FIRST_VERSION_WITH_EPOCH:
            answered.leader_epoch = found.leader_epoch
    return answered


async def _in_replica(
    name: str,
    asked: ListOffsetsRequest.ListOffsetsPartition,
    request: IncomingRequest[ListOffsetsRequest],
    broker: BrokerServices,
) -> TimestampAndOffset | None:
    """Return the place in a partition that this broker leads, or has a replica of."""
    body, hosting = request.body, broker.hosting
    topic = hosting.topics.by_name(name)
    if topic is None:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = hosting.partition(topic, asked.partition_index)
    partition.check_current_leader_epoch(asked.current_leader_epoch)
    _demand_leader(partition, body)
    is_consumer = body.replica_id == CONSUMER_ID
    isolation = IsolationLevel(body.isolation_level) if is_consumer else None
    end_offset = readable_end(partition.log, isolation)
    found = await _place_in_what_is_left(partition, asked.timestamp, end_offset, broker)
    # Another may have become the leader meanwhile.
    _demand_leader(partition, body)
    if (
        is_consumer
        and not partition.demand_leader().is_offset_available
        and _is_of_high_watermark(asked.timestamp, found)
    ):
        raise RequestError.with_default_message(_not_available(request.version))
    return found


def _demand_leader(partition: Partition, body: ListOffsetsRequest) -> None:
    """Raise LeaderRefusesError unless this broker leads; a debugging replica asks any broker."""
    if body.replica_id != DEBUGGING_ID:
        partition.demand_leader()


async def _place_in_what_is_left(
    partition: Partition, timestamp: int, end_offset: int, broker: BrokerServices
) -> TimestampAndOffset | None:
    """Return what `_place` does; search again where segments were removed beneath the search.

    That is compaction, a deletion, or a move of the replica to another log directory.
    """
    while True:
        moment = ReadMoment.of(partition.log.local_log)
        try:
            return await _place(partition, timestamp, end_offset, broker)
        except StorageError:
            if moment.lasts_in(partition.log.local_log):
                raise


async def _place(
    partition: Partition, timestamp: int, end_offset: int, broker: BrokerServices
) -> TimestampAndOffset | None:
    """Return the place that a timestamp, or a number for a place, stands for; None without one."""
    log = partition.log
    if timestamp == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, end_offset, partition.leader_epoch)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        starts = log.local_log.epoch_starts
        start_offset = log.log_start_offset
        is_known = bool(starts) and starts[0].start_offset <= start_offset
        epoch = starts[0].epoch if is_known else -1
        return TimestampAndOffset(NO_TIMESTAMP, start_offset, epoch)
    if timestamp == MAX_TIMESTAMP:
        disk_threads = broker.replicas.disk_threads
        latest = await in_thread(disk_threads, lambda: log.local_log.max_timestamp)
        found = await _first_record_since(log, latest, log.stored_end_offset, broker)
        return None if found is None or found.offset >= end_offset else found
    # The other special numbers are about tiered storage, which no log here has.
    if timestamp < 0:
        return None
    return await _first_record_since(log, timestamp, end_offset, broker)


async def _first_record_since(
    log: UnifiedLog, timestamp: int, end_offset: int, broker: BrokerServices
) -> TimestampAndOffset | None:
    return await broker.inspector.first_record_since(
        log, timestamp, end_offset=end_offset, disk_threads=broker.replicas.disk_threads
    )


def _not_available(version: int) -> ErrorCode:
    """Return the code upon which a client of a version asks again."""
    is_known = version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE


def _is_of_high_watermark(timestamp: int, found: TimestampAndOffset | None) -> bool:
    """Return whether a consumer would get another place if more were committed."""
    return timestamp == LATEST or (found is None and timestamp >= MAX_TIMESTAMP)


def _refuse(request: ListOffsetsRequest, error: RequestError, _version: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[_refused_topic(topic, error.code) for topic in request.topics]
    )


API: Final = BrokerApi(
    request=ListOffsetsRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
