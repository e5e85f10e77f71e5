"""Produce (0): each partition's batch is appended to the log that this broker leads.

Transactions are not coordinated here, so that a transactional batch is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.partition import ALL_IN_SYNC, Partition
from kvorum.broker.partition_leader.errors import LeaderRefusesError
from kvorum.broker.produced_batch import first_batch, produced_batch
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.topic_names import INTERNAL_TOPICS
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.delayed_operation import DelayedOperationPurgatory
from kvorum.node.broker.hosting import Hosting, TopicChoice
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.current_leader import CurrentLeaders
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.errors import StorageError
from kvorum.storage.log_validator import RecordValidationError
from kvorum.storage.producer_state import ProducerError
from kvorum.storage.unified_log import LogAppendInfo
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponseBatchIndexAndErrorMessage,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kvorum.wire.primitives import Message

NO_ACKNOWLEDGEMENT: Final = 0
LEADER_ONLY: Final = 1
FIRST_VERSION_WITH_LEADERS: Final = 10
ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id with which records may be written to internal topics."""
NOT_COORDINATED: Final = "Transactions are not coordinated by this broker."
_USUAL: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The codes of an append that Kafka counts as no failure; with them it names no log start."""
_log = logging.getLogger(__name__)


class _Appended(NamedTuple):
    """A batch that is in the log, and the response that is right once it need not wait."""

    partition: Partition
    info: LogAppendInfo
    response: ProduceResponsePartitionProduceResponse


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message | None:
    """Append every batch; with acks=all, wait until the replicas in sync have them.

    Without acknowledgement there is no response, and an error closes the connection.
    """
    body = request.body
    assert isinstance(body, ProduceRequest)
    for topic in body.topic_data:
        for data in topic.partition_data:
            # As in Kafka, bytes that are no batch at all refuse the whole request.
            first_batch(memoryview(data.records or b""))
    appended: list[_Appended] = []
    responses = [_topic(topic, request, broker, appended) for topic in body.topic_data]
    if body.acks == NO_ACKNOWLEDGEMENT:
        broker.throttling.throttle_produce(request, is_acknowledged=False)
        _demand_no_error(responses)
        return None
    if body.acks == ALL_IN_SYNC and appended:
        await _wait_for_replicas(appended, body.timeout_ms, broker.purgatories.produce)
    return ProduceResponse(
        responses=responses,
        throttle_time_ms=broker.throttling.throttle_produce(request, is_acknowledged=True),
        node_endpoints=_name_leaders(responses, request, broker),
    )


def _name_leaders(
    responses: list[ProduceResponseTopicProduceResponse],
    request: IncomingRequest,
    broker: BrokerServices,
) -> list[ProduceResponseNodeEndpoint]:
    """Name the leader in each refusal of a broker that is none; return where leaders are."""
    if request.version < FIRST_VERSION_WITH_LEADERS:
        return []
    leaders = CurrentLeaders(broker.loader.published, request.listener)
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader = leaders.of(topic.name, topic.topic_id, partition.index)
                partition.current_leader = ProduceResponseLeaderIdAndEpoch(*leader)
    return [ProduceResponseNodeEndpoint(*endpoint) for endpoint in leaders.endpoints]


def _topic(
    topic: ProduceRequestTopicProduceData,
    request: IncomingRequest,
    broker: BrokerServices,
    appended: list[_Appended],
) -> ProduceResponseTopicProduceResponse:
    # As in Kafka, what is sent last for a partition counts.
    batches = {data.index: data for data in topic.partition_data}
    hosting = broker.hosting
    response = ProduceResponseTopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
    try:
        found = hosting.topic(
            TopicChoice(topic.name, topic.topic_id), AclOperation.WRITE, request.access
        )
    except RequestError as error:
        response.partition_responses = [_refusal(index, error.code) for index in batches]
        return response
    for data in batches.values():
        one = _partition(data, found, request, (hosting, broker))
        if isinstance(one, _Appended):
            appended.append(one)
            one = one.response
        response.partition_responses.append(one)
    return response


def _partition(
    data: ProduceRequestPartitionProduceData,
    topic: TopicImage,
    request: IncomingRequest,
    place: tuple[Hosting, BrokerServices],
) -> _Appended | ProduceResponsePartitionProduceResponse:
    """Append one partition's batch, or return its refusal."""
    hosting, broker = place
    body = request.body
    assert isinstance(body, ProduceRequest)
    try:
        if topic.partitions.get(data.index) is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if data.records is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
        batch = produced_batch(memoryview(data.records), request.version)
        if batch.is_transactional:
            raise RequestError(ErrorCode.INVALID_TXN_STATE, NOT_COORDINATED)
        if body.acks not in {ALL_IN_SYNC, NO_ACKNOWLEDGEMENT, LEADER_ONLY}:
            raise RequestError.with_default_message(ErrorCode.INVALID_REQUIRED_ACKS)
        broker.topic_stats.on_produce_request(topic.name)
        if topic.name in INTERNAL_TOPICS and request.header.client_id != ADMIN_CLIENT_ID:
            raise RequestError.with_default_message(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = hosting.partition(topic, data.index)
    except RequestError as error:
        return _refusal(data.index, error.code, _own_text(error))
    clock = broker.clock
    try:
        info = partition.append_records_to_leader(
            batch,
            required_acks=body.acks,
            wall_ms=clock.wall_ms(),
            now_ms=clock.monotonic_ms(),
        )
    except RecordValidationError as error:
        _count_refusal(broker.topic_stats, topic.name, error.code, len(data.records))
        return _invalid(data.index, error, partition)
    except (ProducerError, LeaderRefusesError) as error:
        _count_refusal(broker.topic_stats, topic.name, error.code, len(data.records))
        return _refused_by_log(data.index, error.code, partition)
    except StorageError as error:
        _log.error("%s", error)
        return _refused_by_log(data.index, ErrorCode.KAFKA_STORAGE_ERROR, partition)
    response = ProduceResponsePartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )
    return _Appended(partition, info, response)


def _count_refusal(stats: BrokerTopicStats, topic: str, code: ErrorCode, size_bytes: int) -> None:
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        stats.on_rejected(topic, size_bytes=size_bytes)
    if code not in _USUAL:
        stats.on_failed_produce_request(topic)


async def _wait_for_replicas(
    appended: list[_Appended], timeout_ms: int, purgatory: DelayedOperationPurgatory
) -> None:
    """Set the final code of every batch: NONE, an error, or REQUEST_TIMED_OUT."""

    def codes() -> Iterator[ErrorCode | None]:
        for one in appended:
            required = one.info.last_offset + 1
            yield one.partition.check_enough_replicas_reach_offset(required)

    await purgatory.wait_until(
        lambda: None not in codes(),
        [one.partition for one in appended],
        timeout_ms=timeout_ms,
    )
    for one, code in zip(appended, codes(), strict=True):
        one.response.error_code = ErrorCode.REQUEST_TIMED_OUT if code is None else code


def _own_text(error: RequestError) -> str | None:
    """Return a text that says more than the error's code does."""
    return None if error.message == error.code.default_message else error.message


def _refusal(
    index: int, code: ErrorCode, message: str | None = None
) -> ProduceResponsePartitionProduceResponse:
    return ProduceResponsePartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, error_message=message
    )


def _refused_by_log(
    index: int, code: ErrorCode, partition: Partition
) -> ProduceResponsePartitionProduceResponse:
    response = _refusal(index, code)
    if code not in _USUAL:
        response.log_start_offset = partition.log.log_start_offset
    return response


def _invalid(
    index: int, error: RecordValidationError, partition: Partition
) -> ProduceResponsePartitionProduceResponse:
    """Return the refusal of a batch, which names the records that are wrong (KIP-467)."""
    response = _refused_by_log(index, error.code, partition)
    if error.record_errors:
        response.error_message = error.message
        response.record_errors = [
            ProduceResponseBatchIndexAndErrorMessage(one.batch_index, one.message)
            for one in error.record_errors
        ]
    return response


def _demand_no_error(responses: list[ProduceResponseTopicProduceResponse]) -> None:
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise CloseConnectionError(
                    f"records without acknowledgement were refused with error "
                    f"{partition.error_code}"
                )


def _refuse(request: ProduceRequest, error: RequestError, _version: int) -> ProduceResponse:
    """Refuse every partition."""
    return ProduceResponse(
        responses=[
            ProduceResponseTopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _refusal(partition.index, error.code, _own_text(error))
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


API: Final = BrokerApi(
    key=ApiKey.PRODUCE,
    request=ProduceRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
