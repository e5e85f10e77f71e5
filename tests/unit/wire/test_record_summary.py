"""The summary of a batch's records agrees with reading them, whether the bytes are right or not."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records.record import (
    INT64_MAX,
    NEAR_LIMIT,
    RecordData,
    read_records,
    write_numbered,
)
from kvorum.wire.records.record_summary import RecordSummary, summarize, summary_of

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


def read_one_by_one(data: bytes, count: int) -> RecordSummary | None:
    try:
        records = list(read_records(data, count=count, base_offset=0, base_timestamp=BASE))
    except CorruptBatchError:
        return None
    return summary_of(records, 0) if records else None


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
