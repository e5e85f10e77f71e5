"""One instance of a producer with a transactional id, as an application starts it again and again.

It finds its coordinator, is given an epoch, and writes transactions. One of transaction.version 2
has an epoch for each of them, and may be late with anything that it sends; in earlier versions the
partitions are added beforehand, and a late request to end a transaction would end the next one, as
in Kafka: of such an instance no request to a coordinator outlives its connection.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.handlers.registry import broker_apis
from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.client_history import TXN
from kvorum.simulation.partitions.clients import (
    KEYS,
    PRODUCE_TIMEOUT_MS,
    REQUEST_TIMEOUT_MS,
    PartitionClient,
    Topic,
)
from kvorum.simulation.partitions.closing_connection import ClosingConnection
from kvorum.simulation.partitions.group_ledger import OffsetLedger
from kvorum.simulation.partitions.settings import OFFSETS_ID, TOPIC, TOPIC_ID
from kvorum.simulation.partitions.transaction_book import BookedTransaction, TransactionBook
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches
from kvorum.wire.records.batch import INT32_MAX

OFFSETS_PARTITION: Final = 0
"""The partition of the topic that each transaction commits an offset for."""
FIRST_KEY: Final = 2 * KEYS
"""The first key of these records where logs are compacted: others write the keys before it."""
COMMITS: Final = 0.8
GIVES_UP: Final = 0.004
LEAVES_OPEN: Final = 0.05
"""The share of transactions that are left to their time-out."""
HAS_OFFSETS: Final = 0.5
TIMEOUTS_MS: Final = 300, 1_000, 1_000
TRANSACTIONS_UNTIL_MS: Final = 8_300
"""The end of all transactions, which go on in peace for a while.

Some have to time out after it, and their last markers have to be replicated before the world ends.
"""
LEFT_OPEN_MS: Final = 700
"""The time for which a producer does nothing about a transaction that it leaves open."""
NO_ID: Final = -1
_FORMER_VERSIONS: Final[dict[type[Message], int]] = {
    AddPartitionsToTxnRequest: 3,
    AddOffsetsToTxnRequest: 4,
    TxnOffsetCommitRequest: 4,
    EndTxnRequest: 4,
    ProduceRequest: 11,
}
"""The last versions of producers whose transactions share an epoch."""
_ELSEWHERE: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_TEMPORARY: Final = frozenset(
    {
        *_ELSEWHERE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""The codes upon which a request is sent again."""
_FENCED: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class Step(Enum):
    """A thing that is done within a transaction."""

    ADD_PARTITIONS = "add partitions"
    WRITE = "write"
    ADD_OFFSETS = "add offsets"
    COMMIT_OFFSETS = "commit offsets"


@dataclass(slots=True)
class _Open:
    """A transaction that has not ended, and what is yet to be done in it."""

    booked: BookedTransaction
    partitions: tuple[int, ...]
    steps: deque[tuple[Step, int]] = field(default_factory=deque[tuple[Step, int]])
    batch: RecordBatch | None = None
    written_count: int = 0
    outcome: bool | None = None
    waits_until_ms: float = 0.0
    is_torn: bool = False
    """Whether a batch has no answer, so that its sequences may be in the log or not."""


class TransactionalInstance:
    """One process of a producer; each asks for one thing at a time.

    A later instance makes a zombie of it, which may go on sending. `is_stubborn` zombies do that
    after the answer that they are fenced.
    """

    def __init__(
        self,
        around: BrokerSurroundings,
        random: Random,
        book: TransactionBook,
        *,
        transactional_id: str,
        number: int,
        group_id: str,
        has_own_epochs: bool,
        offsets: OffsetLedger,
    ) -> None:
        self.number = number
        self.transactional_id = transactional_id
        self.is_over = False
        self.is_stubborn = False
        self.last_code = 0
        self._around, self._random, self._book = around, random, book
        self._group_id = group_id
        self._has_own_epochs = has_own_epochs
        self._offsets = offsets
        self._id = next(around.client_ids)
        self._process = around.history.new_process()
        self._begun_count = 0
        self._leaders = [PartitionClient(around, one) for one in range(around.settings.partitions)]
        self._group = PartitionClient(around, 0, topic=Topic(GROUP_METADATA_TOPIC, OFFSETS_ID))
        self._timeout_ms = random.choice(TIMEOUTS_MS)
        self._coordinator: int | None = None
        self._producer_id = NO_ID
        self._epoch = NO_ID
        self._has_to_init = True
        self._sequences: dict[int, int] = {}
        self._open: _Open | None = None
        self._attempt = 0
        self._is_waiting = False

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do any more."""
        return self.is_over or self._open is None

    def describe(self) -> str:
        """Return where it stands, in words."""
        return (
            f"instance {self.number} of {self.transactional_id}: producer {self._producer_id} in "
            f"epoch {self._epoch}, {self._open}, last answer {self.last_code}"
        )

    def end(self) -> None:
        """End the process: it hears no answer any more."""
        self.is_over = True
        if self._open is not None:
            self._open.booked.break_off()
        self._attempt += 1

    def step(self) -> None:
        """Do the next thing, or the last one again."""
        if self._is_waiting or self.is_over:
            return
        if self._coordinator is None:
            self._find_coordinator()
        elif self._has_to_init:
            if self._around.now_ms < TRANSACTIONS_UNTIL_MS:
                self._init(self._coordinator)
        elif self._open is None:
            if self._around.now_ms < TRANSACTIONS_UNTIL_MS:
                self._begin()
        else:
            self._go_on(self._open, self._coordinator)

    # --- requests ---

    def _send(
        self,
        broker: int,
        request: Message,
        on_answer: Callable[[Message | None], None],
        *,
        may_be_late: bool = False,
    ) -> None:
        self._attempt += 1
        attempt = self._attempt
        self._is_waiting = True
        is_handled = False
        connection = ClosingConnection(self._around, broker)
        may_be_late = may_be_late or self._has_own_epochs

        def answered(answer: Message | None) -> None:
            if attempt == self._attempt:
                self._attempt += 1
                self._is_waiting = False
                on_answer(answer)

        def serve(frame: bytes, reply: OnReply) -> None:
            nonlocal is_handled
            if may_be_late or (attempt == self._attempt and not is_handled):
                is_handled = True
                connection.serve(frame, reply)

        self._around.requests.ask(
            (self._id, broker),
            request,
            serve,
            connection.passing_on(answered),
            timeout_ms=REQUEST_TIMEOUT_MS,
            version=self._version_of(type(request)),
        )

    def _version_of(self, kind: type[Message]) -> int:
        assert kind.API_KEY is not None
        latest = broker_apis()[kind.API_KEY].max_version
        return latest if self._has_own_epochs else _FORMER_VERSIONS.get(kind, latest)

    def _find_coordinator(self) -> None:
        brokers = sorted(one for one, server in self._around.servers.items() if server.is_up)
        if not brokers:
            return
        request = FindCoordinatorRequest(
            key_type=CoordinatorType.TRANSACTION.value, coordinator_keys=[self.transactional_id]
        )
        self._send(self._random.choice(brokers), request, self._on_coordinator, may_be_late=True)

    def _on_coordinator(self, answer: Message | None) -> None:
        if isinstance(answer, FindCoordinatorResponse):
            (found,) = answer.coordinators
            self.last_code = found.error_code
            if found.error_code == ErrorCode.NONE:
                self._coordinator = found.node_id

    def _init(self, coordinator: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
        )
        self._send(coordinator, request, self._on_initialized)

    def _on_initialized(self, answer: Message | None) -> None:
        if not isinstance(answer, InitProducerIdResponse):
            self._coordinator = None
        elif self._is_done(answer.error_code):
            self._begin_epoch(answer.producer_id, answer.producer_epoch)
            self._has_to_init = False
            self._book.on_initialized(answer.producer_id, answer.producer_epoch)
            self._around.ledger.counts["coordinated: initialized"] += 1

    def _is_done(self, code: int) -> bool:
        """Take an answer; return whether what was asked for is done."""
        self.last_code = code
        if code == ErrorCode.NONE:
            return True
        if code in _FENCED:
            self._on_fenced()
        elif code in _ELSEWHERE:
            self._coordinator = None
        elif code not in _TEMPORARY:
            self._on_refused()
        return False

    def _on_fenced(self) -> None:
        self._around.ledger.counts["coordinated: fenced"] += 1
        if not self.is_stubborn:
            self.end()

    def _on_refused(self) -> None:
        """Abort what is open; a producer whose end is refused has to begin again."""
        if self._open is None or self._open.outcome is not None:
            self.end()
            return
        self._open.is_torn = True
        self._decide(self._open, is_commit=False)

    def _begin_epoch(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._producer_id, self._epoch):
            self._producer_id = producer_id
            self._epoch = epoch
            self._sequences.clear()

    # --- a transaction ---

    def _begin(self) -> None:
        random = self._random
        count = random.randint(1, len(self._leaders))
        partitions = tuple(sorted(random.sample(range(len(self._leaders)), count)))
        booked = self._booked()
        begun = _Open(booked, partitions)
        writes = [(Step.WRITE, random.choice(partitions)) for _ in range(random.randint(0, 2))]
        steps = [*((Step.WRITE, one) for one in partitions), *writes]
        if not self._has_own_epochs:
            steps.insert(0, (Step.ADD_PARTITIONS, 0))
        if random.random() < HAS_OFFSETS:
            booked.offset = self._offsets.give_to_transaction()
            place = random.randint(0, len(steps))
            added = [] if self._has_own_epochs else [(Step.ADD_OFFSETS, 0)]
            steps[place:place] = [*added, (Step.COMMIT_OFFSETS, 0)]
        begun.steps.extend(steps)
        self._open = begun
        self._around.ledger.counts["coordinated: begun"] += 1

    def _booked(self) -> BookedTransaction:
        """Return a new transaction, which is in the book and in the history."""
        self._begun_count += 1
        begun = BookedTransaction(
            name=f"{self.transactional_id}/{self.number}/{self._begun_count}",
            producer_id=self._producer_id,
            epoch=self._epoch,
            begun_ms=self._around.now_ms,
            operation=self._around.history.begin(self._process, TXN),
            offsets=self._offsets,
        )
        self._book.add(begun)
        return begun

    def _go_on(self, opened: _Open, coordinator: int) -> None:
        random, now_ms = self._random, self._around.now_ms
        if opened.outcome is not None:
            self._end_transaction(opened, coordinator, is_commit=opened.outcome)
        elif now_ms < opened.waits_until_ms:
            return
        elif now_ms > TRANSACTIONS_UNTIL_MS or random.random() < GIVES_UP:
            self._decide(opened, is_commit=False)
        elif opened.steps:
            self._do(opened, *opened.steps[0], coordinator)
        elif opened.waits_until_ms == 0 and random.random() < LEAVES_OPEN:
            opened.waits_until_ms = now_ms + LEFT_OPEN_MS
        else:
            self._decide(opened, is_commit=random.random() < COMMITS)

    def _decide(self, opened: _Open, *, is_commit: bool) -> None:
        opened.is_torn = opened.is_torn or opened.batch is not None
        opened.outcome = is_commit

    def _do(self, opened: _Open, step: Step, index: int, coordinator: int) -> None:
        match step:
            case Step.ADD_PARTITIONS:
                self._add_partitions(opened, coordinator)
            case Step.WRITE:
                self._write(opened, index)
            case Step.ADD_OFFSETS:
                self._add_offsets(coordinator)
            case Step.COMMIT_OFFSETS:
                self._commit_offset(opened.booked)

    def _finish_step(self, code: int) -> None:
        if self._is_done(code) and self._open is not None and self._open.outcome is None:
            self._open.steps.popleft()
            self._open.batch = None

    def _add_partitions(self, opened: _Open, coordinator: int) -> None:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(TOPIC, list(opened.partitions))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )
        self._send(coordinator, request, self._on_partitions_added)

    def _on_partitions_added(self, answer: Message | None) -> None:
        if not isinstance(answer, AddPartitionsToTxnResponse):
            self._coordinator = None
            return
        codes = {
            result.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        # Partitions that were not tried stand beside those that were refused.
        codes.discard(ErrorCode.OPERATION_NOT_ATTEMPTED)
        self._finish_step(max(codes))

    def _add_offsets(self, coordinator: int) -> None:
        request = AddOffsetsToTxnRequest(
            self.transactional_id, self._producer_id, self._epoch, self._group_id
        )
        self._send(coordinator, request, self._on_offsets_added)

    def _on_offsets_added(self, answer: Message | None) -> None:
        if isinstance(answer, AddOffsetsToTxnResponse):
            self._finish_step(answer.error_code)
        else:
            self._coordinator = None

    def _commit_offset(self, booked: BookedTransaction) -> None:
        leader = self._group.leader()
        if leader is None or booked.offset is None:
            return
        wanted = TxnOffsetCommitRequestPartition(OFFSETS_PARTITION, booked.offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self._group_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequestTopic(TOPIC, TOPIC_ID, [wanted])],
        )
        self._send(leader, request, self._on_offset_committed)

    def _on_offset_committed(self, answer: Message | None) -> None:
        if isinstance(answer, TxnOffsetCommitResponse):
            self._finish_step(answer.topics[0].partitions[0].error_code)

    def _write(self, opened: _Open, index: int) -> None:
        leader = self._leaders[index].leader()
        if leader is None:
            return
        if opened.batch is None:
            opened.batch = self._next_batch(opened, index)
        batch = opened.batch
        data = ProduceRequest.PartitionProduceData(index, bytes(batch.data))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=ALL_IN_SYNC,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicProduceData(TOPIC, TOPIC_ID, [data])],
        )

        def on_answer(answer: Message | None) -> None:
            self._on_written(index, batch, answer)

        self._send(leader, request, on_answer, may_be_late=True)

    def _next_batch(self, opened: _Open, index: int) -> RecordBatch:
        records: list[RecordData] = []
        for _ in range(self._random.randint(1, 3)):
            value = opened.booked.record_value(opened.written_count)
            opened.written_count += 1
            key = None
            if self._around.settings.is_compacted:
                key = (FIRST_KEY + self._random.randrange(KEYS)).to_bytes(4, "big")
            records.append(RecordData(value, key, self._around.wall_ms()))
        options = BatchOptions(
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(index, 0),
            is_transactional=True,
        )
        (batch,) = read_batches(build_batch(records, options))
        opened.booked.operation.send(index, batch)
        return batch

    def _on_written(self, index: int, batch: RecordBatch, answer: Message | None) -> None:
        if not isinstance(answer, ProduceResponse):
            return
        (one,) = answer.responses[0].partition_responses
        code = one.error_code
        if code == ErrorCode.NONE:
            place = self._leaders[index].place
            self._around.ledger.acknowledge(place, one.base_offset, batch.crc)
            if self._open is not None:
                self._open.booked.operation.acknowledge(index, batch, one.base_offset)
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            following = batch.base_sequence + batch.last_offset_delta + 1
            self._sequences[index] = following & INT32_MAX
            code = ErrorCode.NONE
        self._finish_step(code)

    def _end_transaction(self, opened: _Open, coordinator: int, *, is_commit: bool) -> None:
        opened.booked.ask_for(is_commit=is_commit)
        self._around.on_outcome(coordinator)
        request = EndTxnRequest(self.transactional_id, self._producer_id, self._epoch, is_commit)

        def on_answer(answer: Message | None) -> None:
            if isinstance(answer, EndTxnResponse):
                self._on_ended(opened, answer)
            else:
                self._coordinator = None

        self._send(coordinator, request, on_answer)

    def _on_ended(self, opened: _Open, answer: EndTxnResponse) -> None:
        is_commit = opened.outcome is True
        if not self._is_done(answer.error_code):
            return
        opened.booked.acknowledge(is_commit=is_commit)
        name = "coordinated: committed" if is_commit else "coordinated: aborted"
        self._around.ledger.counts[name] += 1
        self._open = None
        if self._has_own_epochs:
            self._begin_epoch(answer.producer_id, answer.producer_epoch)
        elif opened.is_torn:
            # Its sequences may be in the logs or not (KIP-360).
            self._has_to_init = True
