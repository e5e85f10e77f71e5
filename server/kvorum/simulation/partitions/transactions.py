"""Transactions of one partition each: who writes and ends them, who reads what they committed.

The coordinator of transactions is the producer itself: each transaction has an epoch of its own,
and its marker the next one (KIP-890). One client commits offsets of a group in transactions, as one
that reads, works and writes.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.client_history import FAIL, OK
from kvorum.simulation.partitions.clients import Consumer, Producer
from kvorum.simulation.partitions.committed_batches import (
    Aborted,
    committed_batches,
    judged_batches,
)
from kvorum.simulation.partitions.groups import READS, GroupClient
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.settings import METADATA_BYTES_MAX, QUIET_FROM_MS, TOPIC, TOPIC_ID
from kvorum.simulation.partitions.stored_batches import batches_of
from kvorum.simulation.properties.catalogue import Checks, PropertyViolatedError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordBatch

TRANSACTION_VERSION: Final = 2
FIRST_MARKER_OF_EPOCH: Final = 2
"""The first version of WriteTxnMarkers with which a late marker ends no other transaction."""
COMMITS: Final = 0.7
GIVES_UP: Final = 0.02
"""The share of its steps with which a producer aborts what it has no answer for."""
PRODUCER_ID: Final = 400
PARTITION: Final = 0
REFUSED_PARTITION: Final = 1
"""The partition of offsets whose metadata is too long."""
WORK_MS_MAX: Final = 600
HAS_LONG_METADATA: Final = 0.2
STABLE_READS: Final = 0.5
BREAK: Final = 0.05
BREAK_MS_MAX: Final = 2_500
"""A pause between two transactions, in which the offsets may expire."""


class TransactionLedger:
    """The decision about each transaction of a partition: commit or abort.

    Without `keeps_markers` a replica may have an aborted record for good: as in Kafka, a marker
    goes ``delete.retention.ms`` after its records, and a replica that comes back later misses it.
    """

    def __init__(self, checks: Checks, *, keeps_markers: bool) -> None:
        self._checks = checks
        self._is_commit: dict[tuple[int, int], bool] = {}
        self._keeps_markers = keeps_markers

    def decide(self, producer_id: int, epoch: int, *, is_commit: bool) -> None:
        """Note how a transaction is to end, before its marker is sent."""
        self._is_commit[producer_id, epoch] = is_commit

    def check(
        self, batches: Iterable[RecordBatch], aborted: Sequence[Aborted], *, message: str
    ) -> None:
        """Check that a reader who leaves out what is aborted keeps what was committed, and no more.

        The batches and the aborted transactions are those of one range of the log, in order.
        """
        for batch, is_read in judged_batches(batches, aborted):
            if batch.is_transactional:
                self.judge(batch, is_read=is_read, message=f"{aborted}; {message}")

    def judge(self, batch: RecordBatch, *, is_read: bool, message: str) -> None:
        """Check that a batch is read, and not left out, if its transaction was committed."""
        is_commit = self._is_commit.get((batch.producer_id, batch.producer_epoch))
        if is_read and is_commit is False and not self._keeps_markers:
            return
        if is_read is not is_commit:
            what = f"producer {batch.producer_id} at {batch.base_offset}"
            text = f"{what}: committed {is_commit}, read {is_read}; {message}"
            raise PropertyViolatedError(promises.READS_COMMITTED, text)
        self._checks.held(promises.READS_COMMITTED)

    def check_end(self, replica: Replica) -> None:
        """Check a log in which every transaction has ended."""
        demand_stable(replica, self._checks)
        log = replica.log
        start = log.log_start_offset
        end = log.stored_end_offset
        found = log.aborted_transactions(start, end)
        self.check(
            batches_of(log, start, end),
            [Aborted(one.producer_id, one.first_offset) for one in found],
            message=str(replica),
        )


def demand_stable(replica: Replica, checks: Checks) -> None:
    """Check that no transaction is open in a log; raises PropertyViolatedError."""
    log = replica.log
    is_stable = log.last_stable_offset == log.stored_end_offset
    checks.demand(promises.TRANSACTIONS_END, str(replica), holds=is_stable)


class TransactionalProducer(Producer):
    """Writes a few batches, then commits or aborts them, and begins again."""

    def __init__(
        self, around: BrokerSurroundings, index: int, transactions: TransactionLedger
    ) -> None:
        super().__init__(
            around, index, acks=ALL_IN_SYNC, producer_id=300 + index, is_transactional=True
        )
        self._transactions = transactions
        self._left = 0
        self._is_open = False
        self._is_commit: bool | None = None

    @property
    def is_idle(self) -> bool:
        """Whether its last transaction has ended."""
        return not self._is_open

    def step(self) -> None:
        """Go on with a transaction, or begin the next one."""
        random, is_over = self.around.random, self.around.now_ms > QUIET_FROM_MS
        if self._is_commit is not None:
            self._send_marker(is_commit=self._is_commit)
        elif self._is_open and (is_over or random.random() < GIVES_UP):
            self._end(is_commit=False)
        elif self.is_waiting:
            return
        elif self._is_open and self._left == 0:
            self._end(is_commit=random.random() < COMMITS)
        elif not is_over:
            if not self._is_open:
                self._is_open, self._left = True, random.randint(1, 4)
            super().step()

    def on_appended(self) -> None:
        """Note that a batch is written."""
        self._left -= 1

    def on_lost(self) -> None:
        """Give up the transaction, of which an unclean election has lost a part."""
        self._end(is_commit=False)

    def _end(self, *, is_commit: bool) -> None:
        self.give_up_batch()
        self._transactions.decide(self.producer_id, self.epoch, is_commit=is_commit)
        self._is_commit = is_commit

    def _send_marker(self, *, is_commit: bool) -> None:
        leader = self.leader()
        if leader is None or self.is_waiting:
            return
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=self.producer_id,
            producer_epoch=self.epoch + 1,
            transaction_result=is_commit,
            topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(TOPIC, [self.index])],
            transaction_version=TRANSACTION_VERSION,
        )
        self.is_waiting = True
        request = WriteTxnMarkersRequest(markers=[marker])
        self.ask(leader, request, self._on_marker, lowest=FIRST_MARKER_OF_EPOCH)

    def _on_marker(self, answer: Message | None) -> None:
        self.is_waiting = False
        if not isinstance(answer, WriteTxnMarkersResponse):
            return
        code = answer.markers[0].topics[0].partitions[0].error_code
        self.last_code = code
        if code == ErrorCode.NONE:
            self.around.ledger.counts["commits" if self._is_commit else "aborts"] += 1
            self.writer.end(OK if self._is_commit else FAIL)
            self._is_commit, self._is_open = None, False
            self.begin_epoch(self.epoch + 1)


class CommittedConsumer(Consumer):
    """Reads what transactions have committed (``isolation.level=read_committed``)."""

    isolation = IsolationLevel.READ_COMMITTED

    def __init__(
        self, around: BrokerSurroundings, index: int, transactions: TransactionLedger
    ) -> None:
        super().__init__(around, index)
        self._transactions = transactions

    def read(
        self, data: FetchResponse.PartitionData, batches: Sequence[RecordBatch], message: str
    ) -> Iterable[RecordBatch]:
        """Check the transactions that were fetched, and return what is committed."""
        if self.around.ledger.is_exempt(self.index):
            return ()
        aborted = [
            Aborted(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()
        ]
        self._transactions.check(batches, aborted, message=message)
        self.around.ledger.counts["read transactions' batches"] += sum(
            batch.is_transactional for batch in batches
        )
        return committed_batches(batches, aborted)


class TransactionalCommitter(GroupClient):
    """Commits one offset in each transaction, works on, and commits or aborts the transaction.

    It is its own coordinator of transactions (KIP-890), like `TransactionalProducer`.
    """

    def __init__(self, around: BrokerSurroundings, group_id: str) -> None:
        super().__init__(around, group_id)
        self._epoch = 0
        self._offset: int | None = None
        self._begun_ms = 0.0
        self._works_until_ms = 0.0
        self._is_committed = False
        self._outcome: bool | None = None

    @property
    def is_idle(self) -> bool:
        """Whether its last transaction has ended."""
        return self._offset is None

    def describe(self) -> str:
        """Return where it stands, in words."""
        return f"transaction {self._epoch}, outcome {self._outcome}, last answer {self.last_code}"

    def step(self) -> None:
        """Read, or go on with a transaction, or begin the next one."""
        random, now_ms = self.around.random, self.around.now_ms
        coordinator, is_over = self.leader(), now_ms > QUIET_FROM_MS
        if self.is_waiting or coordinator is None:
            return
        if random.random() < READS:
            self.read(coordinator, PARTITION, is_stable=random.random() < STABLE_READS)
        elif self._outcome is not None:
            self._send_marker(coordinator, is_commit=self._outcome)
        elif self._offset is not None and (is_over or random.random() < GIVES_UP):
            self._decide(self._offset, is_commit=False)
        elif now_ms < self._works_until_ms:
            return
        elif self._offset is not None and self._is_committed:
            self._decide(self._offset, is_commit=random.random() < COMMITS)
        elif not is_over:
            if self._offset is None:
                self._offset, self._begun_ms = self.ledger.offsets(PARTITION).give(), now_ms
            self._commit(coordinator, self._offset)

    def _commit(self, coordinator: int, offset: int) -> None:
        wanted = [TxnOffsetCommitRequestPartition(PARTITION, committed_offset=offset)]
        has_other = self.around.settings.partitions > REFUSED_PARTITION
        if has_other and self.around.random.random() < HAS_LONG_METADATA:
            other = self.ledger.offsets(REFUSED_PARTITION)
            refused = TxnOffsetCommitRequestPartition(
                REFUSED_PARTITION, other.send(), committed_metadata="m" * (METADATA_BYTES_MAX + 1)
            )
            other.refuse(refused.committed_offset)
            wanted.append(refused)
        request = TxnOffsetCommitRequest(
            transactional_id="worker",
            group_id=self.group_id,
            producer_id=PRODUCER_ID,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequestTopic(TOPIC, TOPIC_ID, wanted)],
        )
        self.send(coordinator, request, self._on_committed)

    def _on_committed(self, answer: Message | None) -> None:
        if not isinstance(answer, TxnOffsetCommitResponse):
            return
        self.last_code = answer.topics[0].partitions[0].error_code
        if self.last_code == ErrorCode.NONE:
            self._is_committed = True
            self.ledger.offsets(PARTITION).is_pending = True
            self._works_until_ms = self.around.now_ms + self.around.random.uniform(0, WORK_MS_MAX)

    def _decide(self, offset: int, *, is_commit: bool) -> None:
        offsets = self.ledger.offsets(PARTITION)
        offsets.is_pending = False
        if is_commit:
            offsets.sent = offset
        else:
            offsets.refuse(offset)
        self._outcome = is_commit

    def _send_marker(self, coordinator: int, *, is_commit: bool) -> None:
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=PRODUCER_ID,
            producer_epoch=self._epoch + 1,
            transaction_result=is_commit,
            topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(GROUP_METADATA_TOPIC, [0])],
            transaction_version=TRANSACTION_VERSION,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        version = self.version_of(WriteTxnMarkersRequest, lowest=FIRST_MARKER_OF_EPOCH)
        self.send(coordinator, request, self._on_marker, version=version)

    def _on_marker(self, answer: Message | None) -> None:
        if not isinstance(answer, WriteTxnMarkersResponse) or self._offset is None:
            return
        self.last_code = answer.markers[0].topics[0].partitions[0].error_code
        if self.last_code != ErrorCode.NONE:
            return
        if self._outcome:
            self.ledger.offsets(PARTITION).acknowledge(self._offset, self._begun_ms)
        random = self.around.random
        self.around.ledger.counts["transactions of offsets"] += 1
        self._offset, self._outcome, self._is_committed = None, None, False
        self._epoch += 1
        if random.random() < BREAK:
            self._works_until_ms = self.around.now_ms + random.uniform(0, BREAK_MS_MAX)
