"""Batches that other Python clients build and read, and any records at all."""

import importlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kvorum.wire.records import (
    BatchOptions,
    Compression,
    Record,
    RecordData,
    build_batch,
    read_batches,
)

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
