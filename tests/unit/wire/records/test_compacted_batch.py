"""Batches that compaction has written: bytes worked out by hand from Kafka's formats."""

import pytest

from kvorum.wire.records import (
    BatchOptions,
    Compression,
    Record,
    RecordBatch,
    RecordData,
    build_batch,
    read_batches,
)
from kvorum.wire.records.compacted_batch import with_records, without_records

TIME = 1_700_000_000_000
HORIZON = TIME + 100_000 + 86_400_000
OPTIONS = BatchOptions(base_offset=7, partition_leader_epoch=3)
RECORDS = [RecordData(b"v1", b"k1", TIME), RecordData(None, b"k2", TIME + 5)]


def batch_of(data: bytes) -> RecordBatch:
    (batch,) = read_batches(data)
    batch.verify()
    return batch


def original(options: BatchOptions = OPTIONS) -> RecordBatch:
    return batch_of(build_batch(RECORDS, options))


def test_a_tombstone_that_is_left_with_a_horizon() -> None:
    batch = original()
    data = with_records(batch, list(batch.records())[1:], delete_horizon_ms=HORIZON)
    header = (
        "0000000000000007 0000003d 00000003 02 cf36a438 0040 00000001 0000018bd50d4aa0 "
        "0000018bcfe56805 ffffffffffffffff ffff ffffffff 00000001"
    )
    assert data == bytes.fromhex(f"{header} 1600b58abf5202046b320100")
    assert batch_of(data).delete_horizon_ms == HORIZON
    assert list(batch_of(data).records()) == [Record(8, TIME + 5, b"k2", None, ())]


def test_an_empty_batch_keeps_producer_and_offsets() -> None:
    batch = original(OPTIONS._replace(producer_id=1000, producer_epoch=2, base_sequence=4))
    data = without_records(batch)
    assert len(data) == 61
    empty = batch_of(data)
    assert empty.crc == 0x3A72756B
    assert (empty.base_offset, empty.last_offset, empty.last_sequence) == (7, 8, 5)
    assert (empty.base_timestamp, empty.max_timestamp, empty.record_count) == (-1, TIME + 5, 0)


@pytest.mark.parametrize("compression", list(Compression))
def test_packed_records_stay_packed(compression: Compression) -> None:
    batch = original(OPTIONS._replace(compression=compression))
    kept = list(batch.records())[:1]
    found = batch_of(with_records(batch, kept, delete_horizon_ms=None))
    assert found.compression is compression
    assert list(found.records()) == kept
    assert (found.max_timestamp, found.last_offset, found.delete_horizon_ms) == (TIME, 8, None)
    assert batch_of(without_records(batch)).compression is Compression.NONE


def test_control_and_transaction_are_kept() -> None:
    options = OPTIONS._replace(producer_id=5, producer_epoch=0, is_transactional=True)
    batch = original(options._replace(is_control=True))
    for data in (
        without_records(batch),
        with_records(batch, list(batch.records()), delete_horizon_ms=HORIZON),
    ):
        assert batch_of(data).is_control
        assert batch_of(data).is_transactional
