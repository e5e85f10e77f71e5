"""DeleteRecords (21): moves the start of partitions that this broker leads."""

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topic_names import INTERNAL_TOPICS
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.handlers.merged_topics import last_requested
from kvorum.node.services import BrokerApi, BrokerServices, Hosting, TopicChoice
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.primitives import Message

HIGH_WATERMARK: Final = -1
"""The offset that stands for the high watermark."""
NOTHING: Final = -1
_log = logging.getLogger(__name__)


class _Deletion(NamedTuple):
    """A deletion that the leader has made, and the result that its followers complete."""

    partition: Partition
    offset: int
    result: DeleteRecordsResponse.DeleteRecordsPartitionResult


async def answer(request: IncomingRequest[DeleteRecordsRequest], broker: BrokerServices) -> Message:
    """Delete what is asked for; wait until the followers that are alive have followed."""
    body = request.body
    hosting = broker.hosting
    asked = (
        (topic.name, requested.partition_index)
        for topic in body.topics
        for requested in topic.partitions
    )
    await hosting.wait_until_led(hosting.known(asked))
    deletions: list[_Deletion] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic.name, partitions=_topic(topic, request, broker, deletions)
            )
            for topic in _merged(body.topics)
        ]
    )
    await broker.purgatories.delete_records.wait_until(
        lambda: all(map(_is_complete, deletions)),
        [one.partition for one in deletions],
        timeout_ms=body.timeout_ms,
    )
    for one in deletions:
        _finish(one)
    return response


def _merged(
    topics: Iterable[DeleteRecordsRequest.DeleteRecordsTopic],
) -> list[DeleteRecordsRequest.DeleteRecordsTopic]:
    asked = last_requested(
        ((topic.name, topic.partitions) for topic in topics),
        lambda requested: requested.partition_index,
    )
    return [DeleteRecordsRequest.DeleteRecordsTopic(*each) for each in asked.items()]


def _is_complete(one: _Deletion) -> bool:
    return not one.partition.is_leader or one.partition.low_watermark >= one.offset


def _finish(one: _Deletion) -> None:
    """Set the low watermark, and the error of a deletion that did not reach every replica."""
    one.result.low_watermark = one.partition.low_watermark
    if not one.partition.is_leader:
        one.result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        one.result.low_watermark = NOTHING
    elif one.result.low_watermark < one.offset:
        one.result.error_code = ErrorCode.REQUEST_TIMED_OUT


def _topic(
    topic: DeleteRecordsRequest.DeleteRecordsTopic,
    request: IncomingRequest[DeleteRecordsRequest],
    broker: BrokerServices,
    deletions: list[_Deletion],
) -> list[DeleteRecordsResponse.DeleteRecordsPartitionResult]:
    hosting = broker.hosting
    try:
        found = hosting.topic(TopicChoice(topic.name), AclOperation.DELETE, request.access)
    except RequestError as error:
        return [_refusal(requested.partition_index, error.code) for requested in topic.partitions]
    results: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = []
    for requested in topic.partitions:
        try:
            partition, offset = _delete(requested, found, hosting, broker)
        except (RequestError, LeaderRefusesError) as error:
            results.append(_refusal(requested.partition_index, error.code))
            continue
        result = DeleteRecordsResponse.DeleteRecordsPartitionResult(requested.partition_index)
        deletions.append(_Deletion(partition, offset, result))
        results.append(result)
    return results


def _delete(
    requested: DeleteRecordsRequest.DeleteRecordsPartition,
    topic: TopicImage,
    hosting: Hosting,
    broker: BrokerServices,
) -> tuple[Partition, int]:
    """Delete in this leader's log; raises RequestError or LeaderRefusesError.

    Returns the partition, and the offset that the starts of all its logs must reach.
    """
    if topic.partitions.get(requested.partition_index) is None:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.name in INTERNAL_TOPICS:
        raise RequestError.with_default_message(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = hosting.partition(topic, requested.partition_index)
    partition.demand_leader()
    if not partition.log.config.may_delete_records:
        raise RequestError.with_default_message(ErrorCode.POLICY_VIOLATION)
    offset = (
        requested.offset if requested.offset != HIGH_WATERMARK else partition.log.high_watermark
    )
    if offset < 0:
        raise RequestError.with_default_message(ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        partition.delete_records(offset, now_ms=broker.runtime.wall_ms())
    except OffsetOutOfRangeError as error:
        raise RequestError.with_default_message(ErrorCode.OFFSET_OUT_OF_RANGE) from error
    except StorageError as error:
        _log.error("%s", error)
        raise RequestError.with_default_message(ErrorCode.KAFKA_STORAGE_ERROR) from error
    return partition, offset


def _refusal(index: int, code: ErrorCode) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
    return DeleteRecordsResponse.DeleteRecordsPartitionResult(index, NOTHING, code)


def _refuse(
    request: DeleteRecordsRequest, error: RequestError, _version: int
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _refusal(requested.partition_index, error.code)
                    for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API: Final = BrokerApi(
    request=DeleteRecordsRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
