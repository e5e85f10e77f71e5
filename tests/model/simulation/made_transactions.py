"""A coordinator and two partitions, the real ones, whose messages a scenario delivers or holds.

Producers and consumers write the history of what they see.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from tests.support.faulty_files import FaultyFiles
from tests.support.transaction_coordinator import Coordinator

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.client_histories.anomalies import Anomaly, Legality
from kvorum.simulation.partitions import history_check
from kvorum.simulation.partitions.client_history import (
    FAIL,
    INFO,
    OK,
    TXN,
    ClientHistory,
    Operation,
)
from kvorum.simulation.partitions.ledger import Replica
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.log_config import DAY_MS
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.log.verification_state import TransactionAppend
from kvorum.storage.topic_log.log_validator import RecordRules
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig, TopicSegmentConfig
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches

PARTITIONS: Final = 2
TOPIC: Final = "data"
TOPIC_ID: Final = bytes([1] * 16)
DIRECTORY_ID: Final = bytes([2] * 16)
ROOT: Final = Path("/logs")
NOW_MS: Final = 1_000_000
COORDINATOR_EPOCH: Final = 1
_CONFIG: Final = TopicLogConfig(
    segments=TopicSegmentConfig(segment_bytes=10_000, index_interval_bytes=100),
    rules=RecordRules(timestamp_before_max_ms=2**62, timestamp_after_max_ms=2**62),
    max_message_bytes=1_000,
    cleanup=CleanupConfig(),
)


class MadeTransactions:
    """The cluster of a scenario. What is written is replicated at once."""

    def __init__(self, transaction_version: int = 2) -> None:
        self.version = transaction_version
        self.coordinator = Coordinator(transaction_version)
        self.history = ClientHistory(lambda: 0.0, PARTITIONS)
        self.logs = _logs()

    def producer(self) -> "MadeProducer":
        """Return a producer that has its epoch."""
        code, producer_id, epoch = self.coordinator.init()
        while code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.end_transactions()
            code, producer_id, epoch = self.coordinator.init()
        assert code == ErrorCode.NONE
        return MadeProducer(self, producer_id, epoch)

    def end_transactions(self, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        """Write the markers that are wanted, and report it if they are in all partitions."""
        for prepared in list(self.coordinator.ending):
            self.write_markers(prepared, partitions)
            if len(partitions) == PARTITIONS:
                self.coordinator.complete()

    def write_markers(self, prepared: TransactionMetadata, partitions: Sequence[int]) -> None:
        """Write the markers of a transaction to some of its partitions, which may refuse them."""
        marker = TransactionMarker(
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            coordinator_epoch=COORDINATOR_EPOCH,
            is_commit=prepared.state is TransactionState.PREPARE_COMMIT,
            transaction_version=prepared.client_version,
        )
        for where in sorted(prepared.partitions):
            if where.partition in partitions:
                self.append(
                    where.partition,
                    marker.batch(NOW_MS),
                    marker.append,
                    origin=AppendOrigin.COORDINATOR,
                )

    def append(
        self,
        index: int,
        batch: RecordBatch,
        transaction: TransactionAppend,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> int | None:
        """Append a batch and return its offset; None where the log refuses it."""
        log = self.logs[index]
        with suppress(ProducerError):
            info = log.append_as_leader(
                batch, leader_epoch=0, now_ms=NOW_MS, origin=origin, transaction=transaction
            )
            log.update_high_watermark(log.log_end_offset)
            return info.first_offset
        return None

    def lose_last_record(self) -> None:
        """Let another broker coordinate, whose log lacks the last record."""
        self.coordinator.log.pop()
        self.coordinator.is_held = False
        self.coordinator.load()

    def abort_by_time(self) -> None:
        """Let the coordinator abort what is open for too long."""
        self.coordinator.pass_time(200_000)
        self.end_transactions()

    def read(self) -> None:
        """Read all partitions, as a consumer does that begins now."""
        for index, log in enumerate(self.logs):
            history_check.read_to_the_end(self.history, Replica(1, index, log))

    def anomalies(self) -> set[Anomaly]:
        """Read what there is at the end, and return the anomalies that are never legal."""
        self.read()
        committed = history_check.WrittenHistory(
            IsolationLevel.READ_COMMITTED,
            self.history.lines(IsolationLevel.READ_COMMITTED, ()),
            frozenset(),
        )
        counts = history_check.judge(committed).counts
        return {kind.anomaly for kind in counts if kind.legality is Legality.NEVER}


class MadeProducer:
    """A producer with a transactional id."""

    def __init__(self, cluster: MadeTransactions, producer_id: int, epoch: int) -> None:
        self.epoch = epoch
        self.operation: Operation
        self._cluster = cluster
        self._producer_id = producer_id
        self._process = cluster.history.new_process()
        self._sequences = [0] * PARTITIONS

    def begin(self) -> None:
        """Begin a transaction."""
        self.operation = self._cluster.history.begin(self._process, TXN)

    def batch(self, index: int, value: bytes) -> RecordBatch:
        """Return the next batch for a partition, which is on its way from now on."""
        options = BatchOptions(
            producer_id=self._producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequences[index],
            is_transactional=True,
        )
        (batch,) = read_batches(build_batch([RecordData(value, None, NOW_MS)], options))
        self._sequences[index] += 1
        self.operation.send(index, batch)
        return batch

    def add(self, index: int) -> ErrorCode:
        """Add a partition to the transaction."""
        where = TransactionPartition(TOPIC, index)
        version = self._cluster.version
        return self._cluster.coordinator.add(self._producer_id, self.epoch, where, version=version)

    def write(self, index: int, value: bytes) -> None:
        """Write to a partition that is added before, unless the coordinator refuses it."""
        batch = self.batch(index, value)
        if self.add(index) == ErrorCode.NONE:
            self.deliver(index, batch)

    def deliver(self, index: int, batch: RecordBatch) -> None:
        """Let a batch arrive, whose leader asks the coordinator if it begins a transaction."""
        guard = None
        with suppress(ProducerError):
            guard = self._cluster.logs[index].producers.maybe_start_transaction_verification(
                self._producer_id,
                sequence=batch.base_sequence,
                epoch=batch.producer_epoch,
                supports_epoch_bump=False,
                now_ms=NOW_MS,
            )
        where = TransactionPartition(TOPIC, index)
        codes = self._cluster.coordinator.verify(self._producer_id, batch.producer_epoch, where)
        is_verified = codes == [ErrorCode.NONE]
        transaction = TransactionAppend(guard if is_verified else None, must_be_verified=True)
        offset = self._cluster.append(index, batch, transaction)
        if offset is not None:
            self.operation.acknowledge(index, batch, offset)

    def end(self, *, is_commit: bool) -> None:
        """Ask for an outcome; one that is refused has failed."""
        code, producer_id, epoch = self._cluster.coordinator.end(
            self._producer_id, self.epoch, is_commit=is_commit, version=self._cluster.version
        )
        if self._cluster.coordinator.is_held:
            # Nothing is answered before it is committed.
            return
        self.operation.end(OK if is_commit and code == ErrorCode.NONE else FAIL)
        if code == ErrorCode.NONE and epoch != self.epoch and self._cluster.version > 1:
            self._producer_id = producer_id
            self.epoch = epoch
            self._sequences = [0] * PARTITIONS

    def give_up(self) -> None:
        """Wait for no answer any more."""
        self.operation.end(INFO)

    def fail(self) -> None:
        """Note that another producer has begun before a commit was asked for."""
        self.operation.end(FAIL)


def _logs() -> list[UnifiedLog]:
    files = FaultyFiles()
    files.make_directory(ROOT)
    directory = LogDirectory(ROOT, DIRECTORY_ID, files, was_clean=False)
    manager = LogManager(
        LogManagerSettings(),
        config_of=lambda _topic: _CONFIG,
        producer_expiration_ms=lambda: DAY_MS,
        random=Random(1),
    )
    manager.startup([directory], lambda _: TOPIC_ID, now_ms=NOW_MS, assigned=lambda _: None)
    return [
        manager.get_or_create_log(
            TopicPartition(TOPIC, index), TOPIC_ID, directory_id=DIRECTORY_ID, now_ms=NOW_MS
        )
        for index in range(PARTITIONS)
    ]
