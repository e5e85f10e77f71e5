"""Produce (0): each partition's batch is appended to the log that this broker leads.

1. A transactional id needs its own permission; bytes that are no batch refuse the whole request.
2. A topic that is unknown or forbidden and a batch that is wrong by itself are refused.
3. The logs of partitions that were created just now are waited for.
4. A batch that begins a transaction waits until the transaction's coordinator, another broker, has
   confirmed that the partition is a part of the transaction (KIP-890).
5. The batches are appended one after the other; a failure refuses its own batch only. Where a disk
   is slow, its writes are waited for.
6. With acks=all, the response waits for the replicas in sync, as long as the request allows. With
   acks=0 there is no response, and an error closes the connection.

==========  ======================================================================================
version     brings
==========  ======================================================================================
3           transactional ids, and batches of format 2; the first one that Kafka 4 serves
5           the start of the log in the response
7           zstd (KIP-110); refused in an older version
8           the wrong records and a text in a refusal (KIP-467)
9           the flexible encoding
10          the present leader, in a refusal because of another one (KIP-951)
11          TRANSACTION_ABORTABLE (KIP-890)
12          partitions that become part of a transaction with their first batch (KIP-890)
13          topic ids in place of names (KIP-516)
==========  ======================================================================================
"""

import logging
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from kvorum.broker.add_partitions_to_txn import operation_of_produce, refusal_of_producer
from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.partition import ALL_IN_SYNC, Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.produced_batch import first_batch, produced_batch
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topic_names import INTERNAL_TOPICS
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.batch_inspector import is_to_be_inspected
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.broker.stored_appends import stored
from kvorum.node.broker.transaction_verification import TransactionalProducer, VerifiedPartitions
from kvorum.node.coroutines import other_work
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.current_leader import CurrentLeaders
from kvorum.node.handlers.merged_topics import last_requested
from kvorum.node.services import BrokerApi, BrokerServices, TopicChoice
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.errors import StorageError
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.log.verification_state import NO_TRANSACTION
from kvorum.storage.topic_log.log_validator import (
    RECORD_ERRORS_MAX,
    RecordError,
    RecordValidationError,
)
from kvorum.storage.topic_log.unified_log import LogAppendInfo
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import NO_TIMESTAMP

NO_ACKNOWLEDGEMENT: Final = 0
LEADER_ONLY: Final = 1
FIRST_VERSION_WITH_LEADERS: Final = 10
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id with which records may be written to internal topics."""
TURN_MS: Final = 10
"""The time for which the batches of a request are worked on before the event loop serves others."""
NO_RECORDS: Final = "The records of the partition are null."
SEVERAL_PRODUCERS: Final = "Transactional records contained more than one producer ID"
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
_PARTITION_INDEX: Final = attrgetter("partition_index")
_log = logging.getLogger(__name__)


class _Sent(NamedTuple):
    """The records for a partition, None without any, and the batch that they begin with, if any."""

    partition_index: int
    records: memoryview | None
    batch: RecordBatch | None


class _Produced(NamedTuple):
    """A batch that is right by itself; its partition and its log have yet to be looked at."""

    topic: TopicImage
    partition_index: int
    batch: RecordBatch
    size_bytes: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the batch is for."""
        return TopicPartition(self.topic.name, self.partition_index)

    @property
    def is_transactional(self) -> bool:
        """Whether a transaction's coordinator has to know of the batch."""
        return self.batch.is_transactional and self.batch.has_producer_id


class _Topic(NamedTuple):
    """A topic of the request: its response, and what the partitions have sent or are answered."""

    response: ProduceResponse.TopicProduceResponse
    partitions: list[_Produced | ProduceResponse.PartitionProduceResponse]


class _Appended(NamedTuple):
    """A batch that is in the log, and the response that is right once it need not wait."""

    partition: Partition
    info: LogAppendInfo
    response: ProduceResponse.PartitionProduceResponse


async def answer(
    request: IncomingRequest[ProduceRequest], broker: BrokerServices
) -> Message | None:
    """Append every batch; with acks=all, wait until the replicas in sync have them.

    Without acknowledgement there is no response, and an error closes the connection.
    """
    body = request.body
    sent = [
        ((topic.name, topic.topic_id), [_sent(data) for data in topic.partition_data])
        for topic in body.topic_data
    ]
    _check_transactional_id(request, (one.batch for _, batches in sent for one in batches))
    merged = last_requested(sent, _PARTITION_INDEX)
    topics = [_topic(*topic, batches, request, broker) for topic, batches in merged.items()]
    produced = [one for topic in topics for one in topic.partitions if isinstance(one, _Produced)]
    # A refusal would make clients send again, in another order perhaps.
    new = ((one.topic, one.partition_index) for one in produced)
    await broker.hosting.wait_until_led(new, timeout_ms=body.timeout_ms)
    appender = _Appender(request, broker, await _verify(produced, request, broker))
    appended = [one for topic in topics for one in await appender.append(topic)]
    appended = [one for one in appended if await _is_stored(one)]
    responses = [topic.response for topic in topics]
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


def _sent(data: ProduceRequest.PartitionProduceData) -> _Sent:
    """Read what was sent for a partition.

    As in Kafka, bytes that are no batch at all refuse the whole request: raises RequestError.
    """
    records = None if data.records is None else memoryview(data.records)
    return _Sent(data.index, records, None if records is None else first_batch(records))


def _check_transactional_id(
    request: IncomingRequest[ProduceRequest], batches: Iterable[RecordBatch | None]
) -> None:
    """Raise RequestError where a transaction's records come without its id, or a permission."""
    body = request.body
    if not any(batch is not None and batch.is_transactional for batch in batches):
        return
    name, kind = body.transactional_id, AclResourceType.TRANSACTIONAL_ID
    if name is None or not request.access.allows(AclOperation.WRITE, kind, name):
        raise RequestError.with_default_message(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


async def _verify(
    produced: list[_Produced], request: IncomingRequest[ProduceRequest], broker: BrokerServices
) -> VerifiedPartitions | None:
    """Ask the coordinator about the partitions of a transaction; return None without one.

    Raises RequestError where the batches have several producers.
    """
    body = request.body
    if body.transactional_id is None:
        return None
    transactional = [one for one in produced if one.is_transactional]
    producers = {(one.batch.producer_id, one.batch.producer_epoch) for one in transactional}
    if not producers:
        return None
    if len(producers) > 1:
        raise RequestError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS)
    producer = TransactionalProducer(
        body.transactional_id, *producers.pop(), operation_of_produce(request.version)
    )
    hosting = broker.hosting
    sequences: dict[Partition, int] = {}
    errors: dict[TopicPartition, ErrorCode] = {}
    for one in transactional:
        try:
            sequences[hosting.partition(one.topic, one.partition_index)] = one.batch.base_sequence
        except RequestError as error:
            errors[one.topic_partition] = error.code
    verified = await broker.transactions.verify_with_retries(producer, sequences)
    verified.errors.update(errors)
    return verified


def _name_leaders(
    responses: list[ProduceResponse.TopicProduceResponse],
    request: IncomingRequest[ProduceRequest],
    broker: BrokerServices,
) -> list[ProduceResponse.NodeEndpoint]:
    """Name the leader in each refusal of a broker that does not lead; return where leaders are."""
    if request.version < FIRST_VERSION_WITH_LEADERS:
        return []
    leaders = CurrentLeaders(broker.loader.published, request.listener)
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader = leaders.of(topic.name, topic.topic_id, partition.index)
                partition.current_leader = ProduceResponse.LeaderIdAndEpoch(*leader)
    return [ProduceResponse.NodeEndpoint(*endpoint) for endpoint in leaders.endpoints]


def _topic(
    name: str,
    topic_id: bytes,
    batches: list[_Sent],
    request: IncomingRequest[ProduceRequest],
    broker: BrokerServices,
) -> _Topic:
    response = ProduceResponse.TopicProduceResponse(name=name, topic_id=topic_id)
    try:
        is_by_id = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
        choice = TopicChoice(name, topic_id, is_by_id, references=len(batches))
        found = broker.hosting.topic(choice, AclOperation.WRITE, request.access)
    except RequestError as error:
        return _Topic(response, [_refusal(sent.partition_index, error.code) for sent in batches])
    return _Topic(response, [_checked(sent, found, request) for sent in batches])


def _checked(
    sent: _Sent, topic: TopicImage, request: IncomingRequest[ProduceRequest]
) -> _Produced | ProduceResponse.PartitionProduceResponse:
    """Return one partition's batch, or its refusal."""
    try:
        if topic.partitions.get(sent.partition_index) is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if sent.records is None:
            raise RequestError(ErrorCode.INVALID_RECORD, NO_RECORDS)
        batch = produced_batch(sent.batch, sent.records, request.version)
    except RequestError as error:
        return _refusal(sent.partition_index, error.code, _own_text(error))
    return _Produced(topic, sent.partition_index, batch, len(sent.records))


class _Appender:
    """Appends the batches of a request, one after the other."""

    def __init__(
        self,
        request: IncomingRequest[ProduceRequest],
        broker: BrokerServices,
        verified: VerifiedPartitions | None,
    ) -> None:
        self._request = request
        self._broker = broker
        self._verified = verified
        self._turn_end_ms = broker.runtime.monotonic_ms() + TURN_MS
        self._record_errors_left = RECORD_ERRORS_MAX

    async def append(self, topic: _Topic) -> list[_Appended]:
        """Append the batches of a topic, and answer each; return those that are in a log now."""
        appended: list[_Appended] = []
        for one in topic.partitions:
            if not isinstance(one, _Produced):
                topic.response.partition_responses.append(one)
                continue
            if self._broker.runtime.monotonic_ms() >= self._turn_end_ms:
                await self._let_others_be_served()
            result = await self._append(one)
            if isinstance(result, _Appended):
                appended.append(result)
                result = result.response
            topic.response.partition_responses.append(result)
        return appended

    async def _let_others_be_served(self) -> None:
        await other_work(self._broker.runtime)
        self._turn_end_ms = self._broker.runtime.monotonic_ms() + TURN_MS

    async def _append(
        self, produced: _Produced
    ) -> _Appended | ProduceResponse.PartitionProduceResponse:
        """Append one partition's batch, or return its refusal."""
        index = produced.partition_index
        code = (
            None if self._verified is None else self._verified.errors.get(produced.topic_partition)
        )
        if code is not None:
            operation = operation_of_produce(self._request.version)
            refusal = refusal_of_producer(code, operation)
            return _refusal(index, refusal.code, refusal.message)
        try:
            partition = _partition(produced, self._request, self._broker)
        except RequestError as error:
            return _refusal(index, error.code, _own_text(error))
        stats = self._broker.topic_stats
        try:
            info = await self._append_to(partition, produced)
        except RecordValidationError as error:
            _count_refusal(stats, produced.topic.name, error.code, produced.size_bytes)
            return self._invalid(index, error, partition)
        except (ProducerError, LeaderRefusesError) as error:
            _count_refusal(stats, produced.topic.name, error.code, produced.size_bytes)
            return _refusal(index, error.code, by=partition)
        except StorageError as error:
            _log.error("%s", error)
            return _refusal(index, ErrorCode.KAFKA_STORAGE_ERROR, by=partition)
        response = ProduceResponse.PartitionProduceResponse(
            index=index,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=partition.log.log_start_offset,
        )
        return _Appended(partition, info, response)

    async def _append_to(self, partition: Partition, produced: _Produced) -> LogAppendInfo:
        clock = self._broker.runtime
        acks = self._request.body.acks
        verified = self._verified
        wall_ms = clock.wall_ms()
        inspected = None
        if is_to_be_inspected(produced.batch):
            # Meanwhile the partition may get another leader: the append looks at that again.
            inspected = await self._broker.inspector.inspect(
                partition, produced.batch, required_acks=acks, wall_ms=wall_ms
            )
        transaction = NO_TRANSACTION
        if verified is not None:
            transaction = verified.append_to(produced.topic_partition)
        return partition.append_records_to_leader(
            produced.batch,
            required_acks=acks,
            wall_ms=wall_ms,
            now_ms=clock.monotonic_ms(),
            transaction=transaction,
            inspected=inspected,
        )

    def _invalid(
        self, index: int, error: RecordValidationError, partition: Partition
    ) -> ProduceResponse.PartitionProduceResponse:
        """Return the refusal of a batch, which names the records that are wrong (KIP-467)."""
        if not error.record_errors:
            return _refusal(index, error.code, by=partition)
        named = error.record_errors[: self._record_errors_left]
        self._record_errors_left -= len(named)
        return _refusal(index, error.code, error.message, named, by=partition)


def _partition(
    produced: _Produced, request: IncomingRequest[ProduceRequest], broker: BrokerServices
) -> Partition:
    """Return the partition that a client may append to; raises RequestError."""
    if request.body.acks not in {ALL_IN_SYNC, NO_ACKNOWLEDGEMENT, LEADER_ONLY}:
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUIRED_ACKS)
    name = produced.topic.name
    broker.topic_stats.on_produce_request(name)
    if name in INTERNAL_TOPICS and request.header.client_id != ADMIN_CLIENT_ID:
        raise RequestError.with_default_message(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return broker.hosting.partition(produced.topic, produced.partition_index)


def _count_refusal(stats: BrokerTopicStats, topic: str, code: ErrorCode, size_bytes: int) -> None:
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        stats.on_rejected(topic, size_bytes=size_bytes)
    if code not in _USUAL:
        stats.on_failed_produce_request(topic)


async def _is_stored(appended: _Appended) -> bool:
    """Wait for a slow disk; return whether the log has the batch, else refuse it."""
    writes = appended.partition.log.writes
    await stored(writes)
    if writes.has_failed:
        response = appended.response
        response.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        response.base_offset = -1
        response.log_append_time_ms = NO_TIMESTAMP
        response.log_start_offset = -1
    return not writes.has_failed


async def _wait_for_replicas(
    appended: list[_Appended], timeout_ms: int, purgatory: DelayedOperationPurgatory
) -> None:
    """Set the final code of every batch: NONE, an error, or REQUEST_TIMED_OUT."""

    def codes() -> list[ErrorCode | None]:
        return [
            one.partition.check_enough_replicas_reach_offset(one.info.last_offset + 1)
            for one in appended
        ]

    found = codes()
    if None in found:
        partitions = [one.partition for one in appended]
        await purgatory.wait_until(lambda: None not in codes(), partitions, timeout_ms=timeout_ms)
        found = codes()
    for one, code in zip(appended, found, strict=True):
        one.response.error_code = ErrorCode.REQUEST_TIMED_OUT if code is None else code


def _own_text(error: RequestError) -> str | None:
    """Return a text that says more than the error's code does."""
    return None if error.message == error.code.default_message else error.message


def _refusal(
    index: int,
    code: ErrorCode,
    message: str | None = None,
    record_errors: Sequence[RecordError] = (),
    *,
    by: Partition | None = None,
) -> ProduceResponse.PartitionProduceResponse:
    """Return the refusal of a batch; that of a log (`by`) has the log's start where Kafka's has."""
    is_start_named = code not in _USUAL
    return ProduceResponse.PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_start_offset=by.log.log_start_offset if by and is_start_named else -1,
        error_message=message,
        record_errors=[
            ProduceResponse.BatchIndexAndErrorMessage(one.batch_index, one.message)
            for one in record_errors
        ],
    )


def _demand_no_error(responses: list[ProduceResponse.TopicProduceResponse]) -> None:
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise CloseConnectionError(
                    f"records without acknowledgement were refused with error "
                    f"{partition.error_code}"
                )


def _refuse(request: ProduceRequest, error: RequestError, _version: int) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
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
    request=ProduceRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
