"""The replay of a batch of ``__consumer_offsets`` by the shard that loads it."""

from __future__ import annotations

from kvorum.groups.errors import DamagedGroupRecordError
from kvorum.groups.records import decode_record
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.wire.errors import WireError
from kvorum.wire.records import ControlRecordType, RecordBatch, decode_control_record
from kvorum.wire.records.compression import STORED_UNPACKED_BYTES_MAX


def replay_batch(shard: GroupCoordinatorShard, batch: RecordBatch, now_ms: int) -> None:
    """Replay the records of a batch, or the marker that ends a transaction.

    Compaction may have taken records, or all of them, out of a batch. Raises `GroupRecordError`.
    """
    try:
        if batch.is_control:
            _replay_control(shard, batch)
        else:
            _replay_data(shard, batch, now_ms)
    except WireError as error:
        raise DamagedGroupRecordError(str(error)) from error
    shard.written(batch.next_offset)


def _replay_data(shard: GroupCoordinatorShard, batch: RecordBatch, now_ms: int) -> None:
    for record in batch.records(STORED_UNPACKED_BYTES_MAX):
        if record.key is None:
            raise DamagedGroupRecordError(f"no key at offset {record.offset}")
        decoded = decode_record(record.key, record.value)
        if decoded is not None:
            shard.replay(record.offset, batch.producer_id, decoded, now_ms)


def _replay_control(shard: GroupCoordinatorShard, batch: RecordBatch) -> None:
    for record in batch.records():
        kind = decode_control_record(record).type
        if kind in {ControlRecordType.COMMIT, ControlRecordType.ABORT}:
            is_commit = kind is ControlRecordType.COMMIT
            shard.replay_end_transaction_marker(batch.producer_id, is_commit=is_commit)
