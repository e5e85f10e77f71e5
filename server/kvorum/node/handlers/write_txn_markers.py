"""WriteTxnMarkers (27): a coordinator of transactions has their ends written to the partitions."""

import logging
from collections.abc import Coroutine, Iterator
from typing import Any, Final

from kvorum.broker.partition import ALL_IN_SYNC, Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import BY_HANDLER, RequestError
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.coroutines import Wait, all_of
from kvorum.node.handlers.group_requests import asked
from kvorum.node.services import BrokerApi, BrokerServices, TopicChoice
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.errors import StorageError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_log.log_validator import RecordValidationError
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.primitives import Message

_NOT_READY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The codes of a group coordinator that a coordinator of transactions does not expect."""
_log = logging.getLogger(__name__)


async def answer(
    request: IncomingRequest[WriteTxnMarkersRequest], broker: BrokerServices
) -> Message:
    """Write each marker; answer when the replicas in sync have them, or the time is up."""
    body = request.body
    access = request.access
    if not access.allows_on_cluster(AclOperation.ALTER, logs_denied=False):
        access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=body.NAME)
    request.progress.throttle_time_ms = 0  # as in Kafka, no quota counts between brokers
    places: list[tuple[int, TopicPartition]] = []
    writes: list[Coroutine[Wait[Any], Any, ErrorCode]] = []
    for wanted in body.markers:
        marker = TransactionMarker.of(wanted)
        for where in _partitions(wanted):
            places.append((marker.producer_id, where))
            writes.append(_write(where, marker, broker))
    codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
    written = await all_of(broker.runtime, writes)
    for (producer_id, where), code in zip(places, written, strict=True):
        codes.setdefault(producer_id, {})[where] = code
    return _response(codes)


def _partitions(wanted: WriteTxnMarkersRequest.WritableTxnMarker) -> Iterator[TopicPartition]:
    for topic in wanted.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index)


async def _write(
    where: TopicPartition, marker: TransactionMarker, broker: BrokerServices
) -> ErrorCode:
    """Write a marker to one partition; return its code."""
    hosting = broker.hosting
    try:
        topic = hosting.topic_for_broker(TopicChoice(where.topic))
        partition = hosting.partition(topic, where.partition)
    except RequestError:
        # As in Kafka, also where the log directory is offline.
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if where.topic == GROUP_METADATA_TOPIC:
        return await _complete_offsets(where.partition, marker, broker)
    return await _append(partition, marker, broker)


async def _complete_offsets(
    partition: int, marker: TransactionMarker, broker: BrokerServices
) -> ErrorCode:
    """Have the group coordinator write the marker, and end the transaction's offsets."""
    try:
        await asked(broker.runtime, broker.groups.complete_transaction, partition, marker)
    except RequestError as error:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
    return ErrorCode.NONE


async def _append(
    partition: Partition, marker: TransactionMarker, broker: BrokerServices
) -> ErrorCode:
    wall_ms = broker.runtime.wall_ms()
    try:
        info = partition.append_records_to_leader(
            marker.batch(wall_ms),
            required_acks=ALL_IN_SYNC,
            wall_ms=wall_ms,
            now_ms=broker.runtime.monotonic_ms(),
            origin=AppendOrigin.COORDINATOR,
            transaction=marker.append,
        )
    except (LeaderRefusesError, RecordValidationError, ProducerError) as error:
        return error.code
    except StorageError as error:
        _log.error("%s", error)
        return ErrorCode.KAFKA_STORAGE_ERROR

    def code() -> ErrorCode | None:
        return partition.check_enough_replicas_reach_offset(info.last_offset + 1)

    await broker.purgatories.produce.wait_until(
        lambda: code() is not None, [partition], timeout_ms=broker.config.network.request_timeout_ms
    )
    found = code()
    return ErrorCode.REQUEST_TIMED_OUT if found is None else found


def _response(codes: dict[int, dict[TopicPartition, ErrorCode]]) -> WriteTxnMarkersResponse:
    """Return the codes by producer, topic and partition."""
    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = []
    for producer_id, partitions in codes.items():
        topics: dict[str, list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]] = {}
        for (topic, index), code in partitions.items():
            result = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(index, code)
            topics.setdefault(topic, []).append(result)
        markers.append(
            WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id,
                [
                    WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(name, results)
                    for name, results in topics.items()
                ],
            )
        )
    return WriteTxnMarkersResponse(markers=markers)


def _refuse(
    request: WriteTxnMarkersRequest, error: RequestError, _version: int
) -> WriteTxnMarkersResponse:
    codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for wanted in request.markers:
        codes[wanted.producer_id] = dict.fromkeys(_partitions(wanted), error.code)
    return _response(codes)


API: Final = BrokerApi(
    request=WriteTxnMarkersRequest, permission=BY_HANDLER, answer=answer, refuse=_refuse
)
