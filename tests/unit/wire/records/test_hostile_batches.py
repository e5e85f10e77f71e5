"""Batches from outside: one clear error, in linear time, with bounded memory, also in a summary."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.peak_memory import peak_memory_below

from kvorum.wire.errors import CorruptBatchError, DecodeError, InvalidRecordError
from kvorum.wire.records import (
    DECOMPRESSED_BYTES_MAX,
    BatchOptions,
    Compression,
    ControlRecordType,
    Record,
    RecordData,
    build_batch,
    decode_control_record,
    read_batches,
)
from kvorum.wire.records.batch import HEADER_BYTES, LENGTH_FIELD_END
from kvorum.wire.records.compression import compress
from kvorum.wire.records.record import (
    HEADERS_MAX,
    INT64_MAX,
    NEAR_LIMIT,
    read_records,
    write_numbered,
)
from kvorum.wire.records.record_runs import outline_of
from kvorum.wire.records.record_summary import RecordSummary, summarize, summary_of

MIB = 1 << 20
FREE_BYTES = 16 * MIB
SECONDS_PER_MIB_MAX = 2.0
COUNT_FIELD = 57
ATTRIBUTES_FIELD = 22
PACKED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
EMPTY_RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"
SAMPLE = [
    RecordData(b"value" * 30, b"key", 1_000, [("header", b"1"), ("none", None)]),
    RecordData(None, None, 2**40),
    RecordData(bytes(200), b"", 5),
]
BASE = 1_700_000_000_000
SIZES = st.one_of(st.integers(0, 3), st.sampled_from((63, 64, 8191, 8192, 20_000)))
BYTES = st.none() | SIZES.map(bytes)
TIMES = st.one_of(
    st.integers(BASE - 9000, BASE + 9000),
    st.integers(-INT64_MAX + BASE, INT64_MAX),
    st.sampled_from((BASE, BASE + 63, BASE + 64, BASE + 8191, BASE + 8192, -1)),
)
HEADERS = st.lists(st.tuples(st.sampled_from(("", "h", "ö" * 70)), BYTES), max_size=3)
RECORDS = st.lists(st.builds(RecordData, BYTES, BYTES, TIMES, HEADERS), min_size=1, max_size=6)


def with_body(body: bytes, *, count: int = 1, compression: int = 0) -> bytes:
    """Return a batch whose header fits `body` and says `count`; its checksum does not hold."""
    header = bytearray(build_batch([RecordData(None)])[:HEADER_BYTES])
    header[8:12] = (HEADER_BYTES - LENGTH_FIELD_END + len(body)).to_bytes(4, "big")
    header[ATTRIBUTES_FIELD] = compression
    header[COUNT_FIELD:HEADER_BYTES] = count.to_bytes(4, "big")
    return bytes(header) + body


def is_refused(data: bytes) -> bool:
    """Tell whether reading the records one at a time ends in an error, which takes one line."""
    try:
        for batch in read_batches(data):
            for record in batch.records():
                assert isinstance(record, Record)
    except CorruptBatchError as error:
        problem = error
    else:
        return False
    assert "\n" not in str(problem)
    return True


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def one_record(tail: bytes, value: bytes = b"") -> bytes:
    """Return a record without a key that ends in `tail`, its headers."""
    body = b"\x00\x00\x00\x01" + varint(len(value)) + value + tail
    return varint(len(body)) + body


# -- damage everywhere -------------------------------------------------------------------------


@settings(max_examples=1000)
@given(
    body=st.binary(max_size=200),
    count=st.integers(0, 2**31 - 1),
    compression=st.sampled_from([0, 0, 1, 2, 3, 4, 7]),
)
def test_any_bytes_after_a_header(body: bytes, count: int, compression: int) -> None:
    is_refused(with_body(body, count=count, compression=compression))


@settings(max_examples=1000)
@given(data=st.binary(max_size=200))
@example(bytes(200))
@example(b"\xff" * 200)
def test_any_bytes_at_all(data: bytes) -> None:
    is_refused(data)


@settings(max_examples=1000)
@given(
    compression=st.sampled_from(list(Compression)),
    changes=st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4
    ),
)
def test_changed_bytes_anywhere(compression: Compression, changes: list[tuple[int, int]]) -> None:
    data = bytearray(build_batch(SAMPLE, BatchOptions(compression=compression)))
    for place, byte in changes:
        data[place % len(data)] = byte
    is_refused(bytes(data))


@pytest.mark.parametrize("compression", list(Compression))
def test_records_cut_anywhere_are_refused(compression: Compression) -> None:
    whole = build_batch(SAMPLE, BatchOptions(compression=compression))
    for end in range(HEADER_BYTES, len(whole)):
        body = whole[HEADER_BYTES:end]
        assert is_refused(with_body(body, count=len(SAMPLE), compression=compression)), end
        assert is_refused(whole[:end])


@pytest.mark.parametrize("huge", [b"\xfe\xff\xff\xff\x0f", b"\xff" * 10, b"\x80" * 10 + b"\x01"])
def test_huge_numbers_anywhere(huge: bytes) -> None:
    """Put lengths of 2³¹ and numbers without an end wherever they fit."""
    body = build_batch(SAMPLE)[HEADER_BYTES:]
    with peak_memory_below(MIB):
        for place in range(len(body)):
            is_refused(with_body(body[:place] + huge + body[place + len(huge) :], count=3))


@pytest.mark.parametrize("count", [0, 2, 1_000_000, 2**31 - 1])
def test_a_count_that_is_not_the_records(count: int) -> None:
    with peak_memory_below(MIB):
        assert is_refused(with_body(EMPTY_RECORD, count=count))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(8, b"\x7f\xff\xff\xff", id="a length of 2^31"),
        pytest.param(8, b"\x80\x00\x00\x00", id="a negative length"),
        pytest.param(8, b"\x00\x00\x00\x30", id="a length within the header"),
        pytest.param(0, b"\xff" * 8, id="a negative offset"),
        pytest.param(0, b"\x7f" + b"\xff" * 7, id="offsets beyond 64 bits"),
        pytest.param(23, b"\xff\xff\xff\xff", id="a last offset before the first"),
        pytest.param(57, b"\x80\x00\x00\x00", id="a negative count"),
        pytest.param(16, b"\x03", id="a format to come"),
        pytest.param(22, b"\x05", id="a compression that does not exist"),
    ],
)
def test_impossible_headers_are_refused(place: int, value: bytes) -> None:
    data = build_batch(SAMPLE)
    assert is_refused(data[:place] + value + data[place + len(value) :])


@pytest.mark.parametrize(
    ("base", "difference", "time"),
    [
        (2**63 - 1, 0, 2**63 - 1),
        (2**63 - 1, 1, -(2**63)),
        (2**63 - 2, 2**62, -(2**62) - 2),
        (-(2**63), -1, 2**63 - 1),
        (2**62, 2**62, -(2**63)),
        (0, -(2**63), -(2**63)),
        (5, 2**40, 2**40 + 5),
    ],
)
def test_times_overflow_as_javas_numbers_do(base: int, difference: int, time: int) -> None:
    data = bytearray(build_batch([RecordData(None, None, 0), RecordData(None, None, difference)]))
    data[27:35] = base.to_bytes(8, "big", signed=True)
    (batch,) = read_batches(data)
    assert [record.timestamp for record in batch.records()] == [base, time]


@settings(max_examples=500)
@given(key=st.none() | st.binary(max_size=8), value=st.none() | st.binary(max_size=60))
@example(key=bytes(4), value=b"\xff\xff")
@example(key=bytes(4), value=b"\x7f\xff\x00\x00\x00\x01")
def test_control_records_of_any_bytes(key: bytes | None, value: bytes | None) -> None:
    for each in [key, *(b"\x00\x00\x00" + bytes([kind]) for kind in ControlRecordType)]:
        with suppress(DecodeError):
            assert decode_control_record(Record(0, 0, each, value, ())).type in ControlRecordType


# -- time and memory ---------------------------------------------------------------------------


def zeros(size: int, compression: Compression) -> bytes:
    return build_batch([RecordData(bytes(size))], BatchOptions(compression=compression))


def headers(count: int) -> bytes:
    return one_record(varint(count) + b"\x00\x01" * count)


def snappy_blocks(block: bytes, count: int) -> bytes:
    head = compress(b"", Compression.SNAPPY)
    return with_body(head + (len(block).to_bytes(4, "big") + block) * count, compression=2)


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield batches that cost their reader as much as they can for their length."""
    most = DECOMPRESSED_BYTES_MAX - 20
    for compression in PACKED:
        name = compression.name.lower()
        yield f"{name}, as much as is allowed", zeros(most, compression)
        yield f"{name}, more than is allowed", zeros(64 * MIB, compression)
        full = headers(HEADERS_MAX)
        full += one_record(b"\x00", value=bytes(most - 10 - len(full)))
        data = with_body(compress(full, compression), count=2, compression=compression)
        yield f"{name}, headers and a value", data
    yield "as many headers as are read", with_body(headers(HEADERS_MAX))
    yield "too many headers", with_body(headers(MIB // 2))
    yield "records of nothing", with_body(EMPTY_RECORD * (MIB // 7), count=MIB // 7)
    yield "zeros", with_body(bytes(MIB), count=2**31 - 1)
    yield "numbers without an end", with_body(b"\xff" * MIB, count=2**31 - 1)
    yield "batches of nothing", with_body(b"", count=0) * (MIB // HEADER_BYTES)
    yield "snappy blocks of nothing", snappy_blocks(b"\x00", MIB // 10)
    yield "snappy blocks that say too much", snappy_blocks(varint(2**30), MIB // 9)
    for compression in PACKED:
        small = zeros(1, compression)
        yield f"{compression.name.lower()}, many small", small * (MIB // len(small))


SLOW_BOMBS = frozenset({"records of nothing", "snappy blocks of nothing"})


BOMBS = [
    pytest.param(data, id=name, marks=[pytest.mark.slow] if name in SLOW_BOMBS else [])
    for name, data in bombs()
]


@pytest.mark.parametrize("data", BOMBS)
def test_memory_is_bounded(data: bytes) -> None:
    with peak_memory_below(4 * len(data) + FREE_BYTES):
        is_refused(data)


@pytest.mark.parametrize("data", BOMBS)
def test_time_is_linear(data: bytes) -> None:
    seconds_max = SECONDS_PER_MIB_MAX * (len(data) + DECOMPRESSED_BYTES_MAX) / MIB
    started = time.process_time()
    is_refused(data)
    assert time.process_time() - started < seconds_max


@pytest.mark.parametrize("compression", PACKED)
def test_exactly_as_much_as_is_allowed_is_read(compression: Compression) -> None:
    size = len(build_batch([RecordData(bytes(MIB))])) - HEADER_BYTES
    (batch,) = read_batches(zeros(MIB, compression))
    assert len(list(batch.records(size))) == 1
    with pytest.raises(CorruptBatchError, match="more than"):
        list(batch.records(size - 1))


@pytest.mark.parametrize("compression", list(Compression))
def test_a_packed_record_is_read_while_none_up_to_it_is_too_large(compression: Compression) -> None:
    records = [RecordData(bytes(size), b"key", 5) for size in (10, 90, 10)]
    (batch,) = read_batches(build_batch(records, BatchOptions(compression=compression)))
    # Attributes, time, offset, two lengths with a key of three bytes, the number of headers.
    larger = 90 + 10
    assert len(list(batch.records(record_bytes_max=larger))) == 3
    limited = batch.records(record_bytes_max=larger - 1)
    if compression is Compression.NONE:
        assert len(list(limited)) == 3
        return
    assert next(limited).offset == 0
    with pytest.raises(
        InvalidRecordError, match="100 bytes exceed the configured maximum record size of 99"
    ):
        next(limited)


def test_headers_up_to_the_limit_are_read() -> None:
    (batch,) = read_batches(with_body(headers(HEADERS_MAX)))
    (record,) = batch.records()
    assert record.headers == (("", None),) * HEADERS_MAX


def read_one_by_one(data: bytes, count: int) -> RecordSummary | None:
    try:
        records = list(read_records(data, count=count, base_offset=0, base_timestamp=BASE))
    except CorruptBatchError:
        return None
    return summary_of(map(outline_of, records), 0) if records else None


def written(records: list[RecordData], step: int = 1) -> bytes:
    numbers = [step * index for index in range(len(records))]
    return bytes(write_numbered(zip(numbers, records, strict=True), BASE).data)


def right_summary(data: bytes, count: int) -> RecordSummary:
    summary = summarize(data, count=count, base_timestamp=BASE)
    assert summary is not None
    assert summary == read_one_by_one(data, count)
    return summary


@given(records=RECORDS, step=st.sampled_from((1, 7, 0)))
def test_right_records(records: list[RecordData], step: int) -> None:
    summary = right_summary(written(records, step), len(records))
    assert summary.latest == max(record.timestamp for record in records)
    assert summary.has_all_keys is all(record.key is not None for record in records)


@settings(max_examples=500)
@given(
    records=RECORDS,
    places=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    cut=st.integers(-3, 3),
    more=st.integers(-1, 1),
)
def test_wrong_bytes(
    records: list[RecordData], places: list[tuple[int, int]], cut: int, more: int
) -> None:
    data = bytearray(written(records))
    for place, value in places:
        data[place % len(data)] = value
    damaged = bytes(data[: len(data) - cut]) if cut > 0 else bytes(data) + bytes(-cut)
    count = len(records) + more
    assert summarize(damaged, count=count, base_timestamp=BASE) == read_one_by_one(damaged, count)


@pytest.mark.parametrize("value_size", [None, 0, 55, 63, 64, 8192])
@pytest.mark.parametrize("key_size", [None, 63, 64])
@pytest.mark.parametrize("time_step", [-1, 0, 1, 100])
@pytest.mark.parametrize("step", [1, 2])
def test_records_that_are_alike(
    key_size: int | None, value_size: int | None, time_step: int, step: int
) -> None:
    key, value = (None if size is None else bytes(size) for size in (key_size, value_size))
    records = [RecordData(value, key, BASE + time_step * index // 3) for index in range(90)]
    right_summary(written(records, step), 90)


@pytest.mark.parametrize("number", [0x00, 0x01, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("sizes", [(0, 5), (1, 70), (64, 0)])
@pytest.mark.parametrize("changed_records", [range(60), [0], [30]])
@pytest.mark.parametrize("first_time", [BASE, BASE + 100])
def test_any_byte_changed_of_records_that_are_alike(
    sizes: tuple[int, int], number: int, changed_records: Sequence[int], first_time: int
) -> None:
    key, value = (bytes(index % 3 for index in range(size)) for size in sizes)
    data = written([RecordData(value, key, first_time + index // 2) for index in range(60)])
    size = len(data) // 60
    for place in range(size):
        changed = bytearray(data)
        for record in changed_records:
            changed[record * size + place] = number
        summary = summarize(bytes(changed), count=60, base_timestamp=BASE)
        assert summary == read_one_by_one(bytes(changed), 60), place


@pytest.mark.parametrize("count", [100, 8193])
@pytest.mark.parametrize("place", [0, 99, -1])
@pytest.mark.parametrize(
    "other",
    [
        RecordData(bytes(5), None, BASE - 3),
        RecordData(bytes(4), b"kk", BASE),
        RecordData(bytes(5), b"k", BASE + 64),
        RecordData(bytes(4), b"k", BASE, (("", None),)),
        RecordData(None, bytes(6), BASE),
    ],
)
def test_a_record_that_differs_among_many_that_are_alike(
    count: int, place: int, other: RecordData
) -> None:
    records = [RecordData(bytes(5), b"k", BASE)] * count
    records[place] = other
    right_summary(written(records), count)


@pytest.mark.parametrize("base", [INT64_MAX - NEAR_LIMIT + 1, -INT64_MAX - 1])
def test_times_near_the_limits_are_left_to_the_reader(base: int) -> None:
    data = write_numbered([(0, RecordData(b"value", timestamp=base))], base).data
    assert summarize(data, count=1, base_timestamp=base) is None
