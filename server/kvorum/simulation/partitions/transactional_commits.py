"""A client that commits offsets of a group in transactions, as one that reads, works and writes."""

from __future__ import annotations

from typing import Final

from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC
from kvorum.simulation.partitions.clients import REQUEST_TIMEOUT_MS
from kvorum.simulation.partitions.group_settings import METADATA_BYTES_MAX
from kvorum.simulation.partitions.groups import READS, GroupClient
from kvorum.simulation.partitions.settings import QUIET_FROM_MS, TOPIC
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.simulation.partitions.transactions import COMMITS, GIVES_UP, TRANSACTION_VERSION
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
    WriteTxnMarkersRequestWritableTxnMarkerTopic,
    WriteTxnMarkersResponse,
)
from kvorum.wire.primitives import Message

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


class TransactionalCommitter(GroupClient):
    """Commits one offset in each transaction, works on, and commits or aborts the transaction.

    It is its own coordinator of transactions (KIP-890), like `TransactionalProducer`.
    """

    def __init__(self, around: Surroundings, group_id: str) -> None:
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
        if self.around.random.random() < HAS_LONG_METADATA:
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
            topics=[TxnOffsetCommitRequestTopic(TOPIC, partitions=wanted)],
        )
        self.send(coordinator, request, self._on_committed)

    def _on_committed(self, answer: Message | None) -> None:
        if not isinstance(answer, TxnOffsetCommitResponse):
            return
        self.last_code = answer.topics[0].partitions[0].error_code
        if self.last_code == ErrorCode.NONE:
            self._is_committed = True
            self.ledger.offsets(PARTITION).is_pending = True
            work_ms = self.around.random.uniform(0, WORK_MS_MAX)
            self._works_until_ms = self.around.now_ms + work_ms

    def _decide(self, offset: int, *, is_commit: bool) -> None:
        offsets = self.ledger.offsets(PARTITION)
        offsets.is_pending = False
        if is_commit:
            offsets.sent = offset
        else:
            offsets.refuse(offset)
        self._outcome = is_commit

    def _send_marker(self, coordinator: int, *, is_commit: bool) -> None:
        marker = WriteTxnMarkersRequestWritableTxnMarker(
            producer_id=PRODUCER_ID,
            producer_epoch=self._epoch + 1,
            transaction_result=is_commit,
            topics=[WriteTxnMarkersRequestWritableTxnMarkerTopic(GROUP_METADATA_TOPIC, [0])],
            transaction_version=TRANSACTION_VERSION,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        self.send(coordinator, request, self._on_marker, timeout_ms=REQUEST_TIMEOUT_MS)

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
