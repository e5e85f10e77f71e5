"""The marker that ends a producer's transaction in a partition (KIP-98)."""

from typing import NamedTuple, Self

from kvorum.storage.log.verification_state import TransactionAppend
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from kvorum.wire.records import (
    BatchOptions,
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    build_batch,
    encode_control_record,
)
from kvorum.wire.records.batch import batch_at


class TransactionMarker(NamedTuple):
    """A COMMIT or ABORT; `transaction_version` is 2 where each transaction has its own epoch."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int

    @classmethod
    def of(cls, wanted: WriteTxnMarkersRequest.WritableTxnMarker) -> Self:
        """Return the marker that a coordinator of transactions asks for."""
        return cls(
            producer_id=wanted.producer_id,
            producer_epoch=wanted.producer_epoch,
            coordinator_epoch=wanted.coordinator_epoch,
            is_commit=wanted.transaction_result,
            transaction_version=wanted.transaction_version,
        )

    @property
    def append(self) -> TransactionAppend:
        """The transaction that its append belongs to, as it states it."""
        return TransactionAppend(transaction_version=self.transaction_version)

    def batch(self, timestamp_ms: int) -> RecordBatch:
        """Return the control batch with the marker, from offset 0."""
        kind = ControlRecordType.COMMIT if self.is_commit else ControlRecordType.ABORT
        record = ControlRecord(kind, EndTxnMarker(coordinator_epoch=self.coordinator_epoch))
        options = BatchOptions(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            is_transactional=True,
            is_control=True,
        )
        data = build_batch([encode_control_record(record, timestamp_ms)], options)
        found = batch_at(memoryview(data), 0)
        assert found is not None
        return found
