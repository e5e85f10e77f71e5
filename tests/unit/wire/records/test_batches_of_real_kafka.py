"""Batches that real Kafka wrote are read whole, checked, and written again to the same bytes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecordType,
    RecordBatch,
    RecordData,
    build_batch,
    decode_control_record,
    read_batches,
)
from kvorum.wire.records.control import encode_control_record

LOGS = ("*/metadata/*/*/*.log", "*/metadata/*/*/*.checkpoint", "*/data/*/*.log")


def batches(golden_sets: Path) -> Iterator[RecordBatch]:
    for pattern in LOGS:
        for file in sorted(golden_sets.glob(pattern)):
            yield from read_batches(file.read_bytes())


def rebuilt(batch: RecordBatch) -> bytes:
    records = [
        RecordData(record.value, record.key, record.timestamp, record.headers)
        for record in batch.records()
    ]
    options = BatchOptions(
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        compression=batch.compression,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )
    return build_batch(records, options)


def is_as_a_producer_wrote_it(batch: RecordBatch) -> bool:
    """Tell batches that `build_batch` can make from those that a broker has worked on since."""
    is_compacted = batch.record_count != batch.last_offset_delta + 1
    is_stamped = batch.is_log_append_time or batch.delete_horizon_ms is not None
    return not is_compacted and not is_stamped and batch.compression is Compression.NONE


def test_every_checksum_holds_and_every_record_is_read(golden_sets: Path) -> None:
    seen: Counter[Compression] = Counter()
    for batch in batches(golden_sets):
        batch.verify()
        records = list(batch.records())
        assert len(records) == batch.record_count
        assert all(batch.base_offset <= record.offset <= batch.last_offset for record in records)
        seen[batch.compression] += len(records)
    assert set(seen) == set(Compression)
    assert seen[Compression.NONE] > 10_000


def test_what_was_read_is_written_to_the_same_bytes(golden_sets: Path) -> None:
    same = 0
    for batch in batches(golden_sets):
        if is_as_a_producer_wrote_it(batch):
            assert rebuilt(batch) == batch.data
            same += 1
    assert same > 1_000


def test_control_records_of_every_kind_are_read_and_written(golden_sets: Path) -> None:
    seen: set[ControlRecordType] = set()
    for batch in batches(golden_sets):
        if not batch.is_control:
            continue
        for record in batch.records():
            control = decode_control_record(record)
            again = encode_control_record(control, record.timestamp)
            assert (again.key, again.value) == (record.key, record.value)
            seen.add(control.type)
    assert seen == set(ControlRecordType)


@pytest.mark.parametrize("position", [0, 8, 16, 17, 21, 30, 57, 61, 70])
def test_a_flipped_byte_is_found_out(golden_sets: Path, position: int) -> None:
    data = bytearray(next(golden_sets.glob("*/metadata/*/*/*.checkpoint")).read_bytes())
    data[position] ^= 0x81
    with pytest.raises(CorruptBatchError):
        verify_all(data)


def verify_all(data: bytearray) -> None:
    for batch in read_batches(data):
        batch.verify()


def test_a_cut_is_an_error_unless_it_is_expected(golden_sets: Path) -> None:
    data = next(golden_sets.glob("*/metadata/*/*/*.checkpoint")).read_bytes()
    whole = list(read_batches(data))
    for cut in (1, 12, 16, 17, 60, 61):
        assert list(read_batches(data + whole[0].data[:cut], is_cut_allowed=True)) == whole
        with pytest.raises(CorruptBatchError, match="cut off"):
            list(read_batches(data + bytes(whole[0].data[:cut])))
