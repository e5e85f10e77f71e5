"""Building batches, packed and plain, and the limits of unpacking."""

import pytest

from kvorum.wire.errors import BatchTooLargeError, CorruptBatchError, EncodeError
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecord,
    ControlRecordType,
    Record,
    RecordData,
    build_batch,
    build_control_batch,
    build_data_batch,
    decode_control_record,
    read_batches,
)
from kvorum.wire.records.compression import decompress

RECORDS = [
    RecordData(b"value", b"key", 1_000, [("h", b"1"), ("empty", b""), ("none", None), ("ü", b"")]),
    RecordData(None, None, 900),
    RecordData(b"", b"", 2**40),
    RecordData(bytes(20_000), b"k" * 70, 1_001),
]
PACKED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
MIB = 1024 * 1024


@pytest.mark.parametrize("compression", list(Compression))
def test_records_come_back_as_they_were(compression: Compression) -> None:
    options = BatchOptions(
        base_offset=77, partition_leader_epoch=5, compression=compression, producer_id=9,
        producer_epoch=2, base_sequence=2**31 - 2, is_transactional=True,
    )  # fmt: skip
    (batch,) = read_batches(build_batch(RECORDS, options))
    batch.verify()
    assert list(batch.records()) == [
        Record(77 + index, data.timestamp, data.key, data.value, tuple(data.headers))
        for index, data in enumerate(RECORDS)
    ]
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (77, 80, 81)
    assert batch.max_timestamp == 2**40
    assert batch.is_transactional
    assert not batch.is_control
    assert batch.last_sequence == 1, "sequences wrap"
    assert batch.compression is compression


def test_a_data_batch_is_what_the_quorum_appends() -> None:
    (batch,) = read_batches(
        build_data_batch([b"one", b"two"], base_offset=3, epoch=4, timestamp_ms=5)
    )
    assert [(record.offset, record.timestamp, record.value) for record in batch.records()] == [
        (3, 5, b"one"),
        (4, 5, b"two"),
    ]
    assert batch.partition_leader_epoch == 4
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


def test_a_control_batch_holds_several_records() -> None:
    controls = [
        ControlRecord(ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(0, 12)),
        ControlRecord(ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(0, 1)),
    ]
    (batch,) = read_batches(build_control_batch(controls, base_offset=0, epoch=1, timestamp_ms=2))
    assert batch.is_control
    assert [decode_control_record(record) for record in batch.records()] == controls


def test_a_batch_without_records_is_not_built() -> None:
    with pytest.raises(EncodeError):
        build_batch([])


@pytest.mark.parametrize("compression", PACKED)
def test_a_bomb_is_refused(compression: Compression) -> None:
    bomb = build_batch([RecordData(bytes(64 * MIB))], BatchOptions(compression=compression))
    assert len(bomb) < 4 * MIB
    (batch,) = read_batches(bomb)
    with pytest.raises(BatchTooLargeError):
        list(batch.records())
    (record,) = batch.records(decompressed_bytes_max=65 * MIB)
    assert record.value == bytes(64 * MIB)


@pytest.mark.parametrize("compression", PACKED)
def test_rubbish_is_refused(compression: Compression) -> None:
    for rubbish in (b"", b"\x00", b"rubbish" * 20, b"\x82SNAPPY\x00", b"\xff" * 100):
        if compression is Compression.SNAPPY and rubbish in {b"", b"\x00"}:
            continue
        with pytest.raises(CorruptBatchError):
            decompress(rubbish, compression)


def test_a_bare_snappy_block_is_read_too() -> None:
    # "abc" as one literal: its length, then a tag for three bytes.
    assert decompress(b"\x03\x08abc", Compression.SNAPPY) == b"abc"


def records_in(body: bytes) -> list[Record]:
    """Read a batch of one record that has this body."""
    whole = build_batch([RecordData(None)])
    length = (49 + len(body)).to_bytes(4, "big")
    (batch,) = read_batches(whole[:8] + length + whole[12:61] + body)
    return list(batch.records())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x0c\x00\x00\x00\x01\x01", id="shorter than its length"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x01\x00\x00", id="longer than its parts"),
        pytest.param(b"\x0c\x00\x00\x00\xfe\xff\xff\xff\x0f", id="a key beyond the end"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff\xff", id="an unterminated number"),
        pytest.param(b"\x13\x00\x00\x00\x01\x01\x00", id="a negative length"),
        pytest.param(b"\x14\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f", id="too many headers"),
        pytest.param(b"\x12\x00\x00\x00\x01\x01\x02\x01\x00", id="a header without a key"),
        pytest.param(b"\x0c\x00\x00\x00\x01\x01\x00\x0c", id="bytes after the last"),
    ],
)
def test_bytes_that_are_not_records_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        records_in(body)


def test_a_header_key_that_is_not_utf_8_is_read_as_java_reads_it() -> None:
    (record,) = records_in(b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x00")
    assert record.headers == (("\ufffd", b""),)
