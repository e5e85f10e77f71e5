"""The producers with an id that a partition knows: sequences, epochs, transactions (KIP-98).

The state is a fold of the log: each batch of such a producer is checked against what is known of
the producer, and changes it. A batch that fails a check changes nothing. A follower does not check:
the leader that took the batch has decided.

Names are those of Kafka's ProducerStateManager, ProducerAppendInfo and ProducerStateEntry.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.verification_state import (
    NO_TRANSACTION,
    TransactionAppend,
    VerificationGuard,
    VerificationStateEntry,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import ControlRecordType, RecordBatch, decode_control_record
from kvorum.wire.records.batch import INT32_MAX, NO_SEQUENCE

BATCHES_KEPT: Final = 5
"""The number of known batches of a producer: one that is sent again is answered as before."""
NO_EPOCH: Final = -1
NO_COORDINATOR: Final = -1
EPOCH_MAX: Final = 2**15 - 1
OWN_EPOCHS_VERSION: Final = 2
"""The transaction version from which on each transaction has an epoch of its own (KIP-890)."""


class ProducerError(Exception):
    """A batch that its producer may not write; the code is the answer to the producer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class BatchMetadata(NamedTuple):
    """One batch of a producer: its last sequence and offset, how many it has, and its time."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence of the first record; after 2³¹ - 1 comes 0."""
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + INT32_MAX + 1

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """The state of one producer; `batches` are its latest of this epoch, the oldest first.

    `last_timestamp` is that of its last record or marker in milliseconds, -1 for none.
    `transaction_start` is the first offset of its open transaction, None without one.
    """

    epoch: int = NO_EPOCH
    coordinator_epoch: int = NO_COORDINATOR
    last_timestamp: int = -1
    transaction_start: int | None = None
    batches: tuple[BatchMetadata, ...] = ()

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 if no batch is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the batch that `batch` is sent again of; None for a new one."""
        if batch.producer_epoch != self.epoch:
            return None
        sequences = batch.base_sequence, batch.last_sequence
        for known in self.batches:
            if (known.first_sequence, known.last_sequence) == sequences:
                return known
        return None

    def has_open_transaction(self, epoch: int) -> bool:
        """Return whether a transaction of this epoch is open."""
        return self.transaction_start is not None and self.epoch == epoch

    def with_epoch(self, epoch: int) -> ProducerEntry:
        """Return the entry in an epoch; the batches of another epoch are forgotten."""
        return self if epoch == self.epoch else self._replace(epoch=epoch, batches=())


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended; `last_offset` is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerAppendInfo(NamedTuple):
    """The changes by a batch: its producer's entry, and the transaction that it ends if any."""

    entry: ProducerEntry
    ended: CompletedTransaction | None = None


class ProducerState:
    """The producers of one partition, and its transactions that readers may have to wait for."""

    def __init__(self) -> None:
        self.end_offset = 0
        """The offset up to which batches are taken in."""
        self._entries: dict[int, ProducerEntry] = {}
        # First offset -> producer. A log ascends, so the first one is the lowest.
        self._open: dict[int, int] = {}
        # First offset -> marker's offset, of ended ones whose marker is not replicated yet.
        self._unreplicated: dict[int, int] = {}
        self._verifications: dict[int, VerificationStateEntry] = {}

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        """The producers by id."""
        return MappingProxyType(self._entries)

    def entry(self, producer_id: int) -> ProducerEntry:
        """Return what is known of a producer; an empty entry for nothing."""
        return self._entries.get(producer_id, _UNKNOWN)

    def append(
        self,
        batch: RecordBatch,
        origin: AppendOrigin,
        transaction: TransactionAppend = NO_TRANSACTION,
    ) -> CompletedTransaction | None:
        """Check a batch and take it in; return the transaction that it ends. See `check`."""
        change = self.check(batch, origin, transaction)
        self.update(batch, change)
        return change.ended

    def check(
        self,
        batch: RecordBatch,
        origin: AppendOrigin,
        transaction: TransactionAppend = NO_TRANSACTION,
    ) -> ProducerAppendInfo:
        """Return what a batch with its offsets changes, without changing anything yet.

        A duplicate must have been looked for. Raises `ProducerError`, and `CorruptBatchError` for
        a control record that cannot be read.
        """
        before = self.entry(batch.producer_id)
        verification = self._verifications.get(batch.producer_id)
        if origin is not AppendOrigin.REPLICATION:
            _check_verification(before, batch, verification, transaction)
        if not batch.is_control:
            return ProducerAppendInfo(_appended(before, batch, origin, verification))
        marker = _marker_of(batch)
        if marker is None:
            return ProducerAppendInfo(before)
        after = _ended(before, batch, marker, origin, transaction.transaction_version)
        start = before.transaction_start
        if start is None:
            return ProducerAppendInfo(after)
        ended = CompletedTransaction(batch.producer_id, start, batch.base_offset, marker.is_abort)
        return ProducerAppendInfo(after, ended)

    def update(self, batch: RecordBatch, change: ProducerAppendInfo) -> None:
        """Take in a batch that was checked, and has been written since."""
        start = change.entry.transaction_start
        if start is not None and self.entry(batch.producer_id).transaction_start is None:
            self._open[start] = batch.producer_id
        self._entries[batch.producer_id] = change.entry
        self.end_offset = batch.next_offset
        if batch.is_transactional:
            self._end_verification(batch)

    def maybe_start_transaction_verification(
        self, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Return the guard of a batch that begins a transaction; None if one of its epoch is open.

        `sequence` is the batch's first one, `now_ms` the wall clock. Batches that wait at the same
        time have one guard. Raises `ProducerError` INVALID_PRODUCER_EPOCH for an old epoch.
        """
        entry = self.entry(producer_id)
        if epoch < entry.epoch:
            raise ProducerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id}: epoch {epoch}, and {entry.epoch} is known",
            )
        if entry.has_open_transaction(epoch):
            return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = VerificationStateEntry(now_ms, sequence, epoch, supports_epoch_bump)
            self._verifications[producer_id] = verification
        verification.maybe_update_lowest_sequence_and_epoch(sequence, epoch)
        return verification.guard

    def _end_verification(self, batch: RecordBatch) -> None:
        """Forget the guard: a transaction is open now, or has ended.

        It stays where the producer's next transaction, whose epoch the marker has, is verified.
        """
        verification = self._verifications.get(batch.producer_id)
        if verification is None:
            return
        is_next_verified = verification.supports_epoch_bump and batch.is_control
        if not (is_next_verified and batch.producer_epoch == verification.epoch):
            del self._verifications[batch.producer_id]

    def restore(self, entries: Mapping[int, ProducerEntry], end_offset: int) -> None:
        """Begin with stored producers as of `end_offset`."""
        self._entries = dict(entries)
        self._open = {
            entry.transaction_start: producer_id
            for producer_id, entry in sorted(
                entries.items(), key=lambda item: item[1].transaction_start or 0
            )
            if entry.transaction_start is not None
        }
        self._unreplicated = {}
        self.end_offset = end_offset

    def take_over(self, other: ProducerState) -> None:
        """Know what `other` knows, the state of another log that has the same records.

        A snapshot has less: of each producer its last batch, and no verification.
        """
        self._entries = dict(other._entries)
        self._open = dict(other._open)
        self._unreplicated = dict(other._unreplicated)
        self._verifications = dict(other._verifications)

    def last_stable_offset(self, ended: CompletedTransaction) -> int:
        """Return where the log is stable once a transaction is ended, and no other one ends."""
        others = (first for first, producer in self._open.items() if producer != ended.producer_id)
        return min(others, default=ended.last_offset + 1)

    def complete(self, ended: CompletedTransaction) -> None:
        """Note that a transaction has ended; readers wait until its marker is replicated."""
        del self._open[ended.first_offset]
        self._unreplicated[ended.first_offset] = ended.last_offset

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget ended transactions whose markers are below the high watermark."""
        for first, last in list(self._unreplicated.items()):
            if last < high_watermark:
                del self._unreplicated[first]

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is open, or whose marker may still be lost."""
        return min((*self._open, *self._unreplicated), default=None)

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of a transaction that is open."""
        return min(self._open, default=None)

    def has_late_transaction(self, wall_ms: int) -> bool:
        """Return whether the producer of the oldest open transaction has written nothing since."""
        oldest = next(iter(self._open.values()), None)
        return oldest is not None and 0 < self._entries[oldest].last_timestamp < wall_ms

    def expire(self, *, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without a transaction that wrote nothing for the expiration time.

        Verifications that began as long ago are forgotten too. `now_ms` is the wall clock. Another
        thread may read the entries meanwhile, as it does to close a log.
        """
        newest_expired_ms = now_ms - expiration_ms
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.transaction_start is not None or entry.last_timestamp > newest_expired_ms
        }
        self._verifications = {
            producer_id: verification
            for producer_id, verification in self._verifications.items()
            if verification.timestamp > newest_expired_ms
        }


_UNKNOWN: Final = ProducerEntry()


class _Marker(NamedTuple):
    """The end of a transaction, as a coordinator has written it."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def _marker_of(batch: RecordBatch) -> _Marker | None:
    """Return the marker in a control batch; None for one that compaction has emptied."""
    record = next(batch.records(), None)
    if record is None:
        return None
    control = decode_control_record(record)
    assert isinstance(control.message, EndTxnMarker)
    is_abort = control.type is ControlRecordType.ABORT
    return _Marker(is_abort, control.message.coordinator_epoch, record.timestamp)


def _check_verification(
    before: ProducerEntry,
    batch: RecordBatch,
    verification: VerificationStateEntry | None,
    transaction: TransactionAppend,
) -> None:
    """Raise `ProducerError` for a batch that begins a transaction and was not verified."""
    if not batch.is_transactional or before.has_open_transaction(batch.producer_epoch):
        return
    if batch.producer_epoch < before.epoch:
        raise _fenced(before, batch)
    if batch.is_control or not transaction.must_be_verified:
        return
    if verification is None or verification.guard is not transaction.guard:
        raise ProducerError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {batch.producer_id}: a record of no transaction that is open",
        )


def _appended(
    before: ProducerEntry,
    batch: RecordBatch,
    origin: AppendOrigin,
    verification: VerificationStateEntry | None,
) -> ProducerEntry:
    """Return the entry after a batch of data; raises `ProducerError`."""
    if batch.producer_epoch < before.epoch and origin is not AppendOrigin.REPLICATION:
        raise _fenced(before, batch)
    if origin is AppendOrigin.CLIENT:
        _check_lowest_sequence(before, batch, verification)
        _check_sequence(before, batch)
    if before.transaction_start is not None and not batch.is_transactional:
        raise ProducerError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {batch.producer_id} writes a batch without its open transaction",
        )
    entry = before.with_epoch(batch.producer_epoch)
    added = BatchMetadata(
        batch.last_sequence, batch.last_offset, batch.last_offset_delta, batch.max_timestamp
    )
    start = before.transaction_start
    if start is None and batch.is_transactional:
        start = batch.base_offset
    return entry._replace(
        last_timestamp=batch.max_timestamp,
        transaction_start=start,
        batches=(*entry.batches, added)[-BATCHES_KEPT:],
    )


def _check_lowest_sequence(
    before: ProducerEntry, batch: RecordBatch, verification: VerificationStateEntry | None
) -> None:
    """Raise `ProducerError` for a batch behind one whose verification has yet to succeed.

    A producer whose transactions have epochs of their own, and of which nothing is known, begins
    at 0.
    """
    if verification is None:
        return
    lowest = verification.lowest_sequence
    if verification.supports_epoch_bump and not before.batches:
        lowest = min(lowest, 0)
    if batch.base_sequence > lowest:
        raise ProducerError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {batch.producer_id} at offset {batch.base_offset}: sequence "
            f"{batch.base_sequence}, and {lowest} has to come first",
        )


def _check_sequence(before: ProducerEntry, batch: RecordBatch) -> None:
    """Raise `ProducerError` unless the batch follows the last one of its producer.

    A producer of which nothing is known may begin anywhere: its records may have been deleted.
    """
    if before.epoch == NO_EPOCH:
        return
    last = before.last_sequence if batch.producer_epoch == before.epoch else NO_SEQUENCE
    expected = 0 if last == INT32_MAX else last + 1
    if batch.base_sequence != expected:
        raise ProducerError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {batch.producer_id} at offset {batch.base_offset}: sequence "
            f"{batch.base_sequence} where {expected} belongs",
        )


def _ended(
    before: ProducerEntry,
    batch: RecordBatch,
    marker: _Marker,
    origin: AppendOrigin,
    transaction_version: int,
) -> ProducerEntry:
    """Return the entry after the end of a transaction; raises `ProducerError`."""
    if origin is not AppendOrigin.REPLICATION:
        if not _may_end(before, batch.producer_epoch, transaction_version):
            raise _fenced(before, batch)
        if marker.coordinator_epoch < before.coordinator_epoch:
            raise ProducerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {batch.producer_id}: the coordinator's epoch "
                f"{marker.coordinator_epoch} is below {before.coordinator_epoch}",
            )
    return before.with_epoch(batch.producer_epoch)._replace(
        coordinator_epoch=marker.coordinator_epoch,
        last_timestamp=marker.timestamp,
        transaction_start=None,
    )


def _may_end(before: ProducerEntry, epoch: int, transaction_version: int) -> bool:
    """Return whether a marker's epoch may end the producer's transaction, or end none.

    Where each transaction has its own epoch, the marker has the next one; the same one is that of
    a marker written again.
    """
    if transaction_version < OWN_EPOCHS_VERSION or epoch == EPOCH_MAX:
        return epoch >= before.epoch
    return epoch > before.epoch or (epoch == before.epoch and before.transaction_start is None)


def _fenced(before: ProducerEntry, batch: RecordBatch) -> ProducerError:
    return ProducerError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {batch.producer_id} at offset {batch.base_offset}: epoch "
        f"{batch.producer_epoch}, and {before.epoch} is known",
    )
