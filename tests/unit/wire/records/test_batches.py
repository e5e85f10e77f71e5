"""Batches that we, compaction, real Kafka and other Python clients build, and limits of packing."""

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kvorum.wire.checksums import crc32c
from kvorum.wire.errors import BatchTooLargeError, CorruptBatchError, EncodeError
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecord,
    ControlRecordType,
    Record,
    RecordBatch,
    RecordData,
    build_batch,
    build_control_batch,
    build_data_batch,
    decode_control_record,
    read_batches,
)
from kvorum.wire.records.compacted_batch import with_records, without_records
from kvorum.wire.records.control import encode_control_record
from kvorum.wire.records.decompression import decompress

RECORDS = [
    RecordData(b"value", b"key", 1_000, [("h", b"1"), ("empty", b""), ("none", None), ("ü", b"")]),
    RecordData(None, None, 900),
    RecordData(b"", b"", 2**40),
    RecordData(bytes(20_000), b"k" * 70, 1_001),
]
PACKED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
MIB = 1024 * 1024
TIME = 1_700_000_000_000
HORIZON = TIME + 100_000 + 86_400_000
OPTIONS = BatchOptions(base_offset=7, partition_leader_epoch=3)
TWO_RECORDS = [RecordData(b"v1", b"k1", TIME), RecordData(None, b"k2", TIME + 5)]
LOGS = ("*/metadata/*/*/*.log", "*/metadata/*/*/*.checkpoint", "*/data/*/*.log")
# kafka-python reads its own schemas in a way that Python will drop.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
LIBRARIES = ["kafka", "aiokafka"]
CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
# kafka-python packs otherwise only with libraries that are not among ours.
PACKERS = [
    *(("aiokafka", codec) for codec in CODECS),
    ("kafka", Compression.NONE),
    ("kafka", Compression.GZIP),
]
SAMPLE = [
    RecordData(b"value", b"key", 1_700_000_000_000, [("h", b"1"), ("none", None), ("ü", b"")]),
    RecordData(None, None, 1_700_000_000_007),
    RecordData(b"", b"", 1_600_000_000_000),
    RecordData(b"v" * 100_000, b"k" * 70, 1_700_000_000_001),
]
times = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=20)
some_bytes = st.none() | st.binary(max_size=200)
some_headers = st.lists(st.tuples(texts, some_bytes), max_size=4)
any_records = st.lists(
    st.builds(RecordData, some_bytes, some_bytes, times, some_headers), min_size=1, max_size=20
)


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


def batch_of(data: bytes) -> RecordBatch:
    (batch,) = read_batches(data)
    batch.verify()
    return batch


def original(options: BatchOptions = OPTIONS) -> RecordBatch:
    return batch_of(build_batch(TWO_RECORDS, options))


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


def as_read(records: Sequence[RecordData], base_offset: int) -> list[Record]:
    return [
        Record(base_offset + index, data.timestamp, data.key, data.value, tuple(data.headers))
        for index, data in enumerate(records)
    ]


def record_of(theirs: Any) -> Record:
    headers = tuple((str(key), value) for key, value in theirs.headers)
    return Record(theirs.offset, theirs.timestamp, theirs.key, theirs.value, headers)


def built_elsewhere(library: str, codec: Compression) -> bytes:
    module: Any = importlib.import_module(f"{library}.record.default_records")
    builder = module.DefaultRecordBatchBuilder(2, int(codec), True, 9, 3, 70, 1 << 24)
    for index, data in enumerate(SAMPLE):
        builder.append(index, data.timestamp, data.key, data.value, list(data.headers))
    return bytes(builder.build())


@pytest.mark.parametrize(("library", "codec"), PACKERS)
def test_what_they_build_is_read(library: str, codec: Compression) -> None:
    (batch,) = read_batches(built_elsewhere(library, codec))
    batch.verify()
    assert batch.compression is codec
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 3, 70)
    assert batch.max_timestamp == 1_700_000_000_007
    assert list(batch.records()) == as_read(SAMPLE, 0)


@pytest.mark.parametrize(("library", "codec"), PACKERS)
def test_what_we_build_is_read_by_them(library: str, codec: Compression) -> None:
    module: Any = importlib.import_module(f"{library}.record.memory_records")
    options = BatchOptions(
        base_offset=500, partition_leader_epoch=4, compression=codec, producer_id=9,
        producer_epoch=3, base_sequence=70, is_transactional=True,
    )  # fmt: skip
    batch: Any = module.MemoryRecords(build_batch(SAMPLE, options)).next_batch()
    assert batch.validate_crc()
    assert (batch.base_offset, batch.producer_id, batch.is_transactional) == (500, 9, True)
    assert [record_of(each) for each in batch] == as_read(SAMPLE, 500)


@pytest.mark.parametrize("library", LIBRARIES)
def test_unpacked_batches_are_the_same_bytes(library: str) -> None:
    options = BatchOptions(
        partition_leader_epoch=0, producer_id=9, producer_epoch=3, base_sequence=70,
        is_transactional=True,
    )  # fmt: skip
    theirs = bytearray(built_elsewhere(library, Compression.NONE))
    # Each fills in another leader epoch; a broker replaces it, and the checksum leaves it out.
    theirs[12:16] = bytes(4)
    assert build_batch(SAMPLE, options) == theirs


@example(
    records=[RecordData(b"v", None, -(2**62)), RecordData(b"v", None, 2**62)],
    base_offset=0,
    compression=Compression.NONE,
)
@settings(max_examples=300)
@given(
    records=any_records,
    base_offset=st.integers(0, 2**63 - 2**31),
    compression=st.sampled_from(CODECS),
)
def test_any_records_come_back_as_they_were(
    records: list[RecordData], base_offset: int, compression: Compression
) -> None:
    data = build_batch(records, BatchOptions(base_offset=base_offset, compression=compression))
    (batch,) = read_batches(data)
    batch.verify()
    assert list(batch.records()) == as_read(records, base_offset)
    assert batch.size == len(data)
    assert batch.max_timestamp == max(record.timestamp for record in records)


def test_it_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(memoryview(b"123456789")[0:9]) == 0xE3069283
