"""Packed records that are read piece by piece: the same as those that are unpacked at once."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.packed_variants import Packed, packed_variants

from kvorum.wire.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    DecompressionError,
    InvalidRecordError,
)
from kvorum.wire.records import Compression, RecordData, decompression, record_runs
from kvorum.wire.records.compression import compress, compress_pieces
from kvorum.wire.records.decompression import decompress_few, decompressed_pieces
from kvorum.wire.records.record import HEADERS_MAX, Record, read_records, write_numbered
from kvorum.wire.records.record_runs import RecordOutline, RecordPieces, Run, outline_of
from kvorum.wire.records.record_summary import summarize_all, summary_of
from kvorum.wire.records.size_check import up_to

PACKED = tuple(Compression)[1:]
CONTENT = b"0123456789abcde"
BASE_OFFSET = 100
BASE_TIMESTAMP = 1_000
LIKE_KAFKA = {
    "lz4: wrong content size": CONTENT,
    "lz4: wrong content checksum": CONTENT,
    "lz4: no content size": CONTENT,
    "lz4: content checksum is cut": CONTENT,
    "lz4: empty block behind": CONTENT,
    "lz4: empty block instead of an end": CONTENT,
    "lz4: empty block before": b"",
    "lz4: empty frame before": b"",
    "lz4: linked blocks": None,
    "lz4: linked blocks, all other flags": None,
    "lz4: dictionary": None,
    "lz4: skippable frame before": None,
}
"""The forms that a stream reads as Kafka does, and the library that unpacks at once does not."""


def outcome(pieces: Iterator[bytes]) -> bytes | None:
    try:
        return b"".join(pieces)
    except DecompressionError:
        return None


def read_whole(packed: Packed) -> bytes | None:
    try:
        return decompress_few(packed.data, packed.compression)
    except DecompressionError:
        return None


@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (1024, 7), (4, 1024)])
@pytest.mark.parametrize("name", packed_variants(CONTENT))
def test_a_stream_takes_what_is_taken_at_once(
    name: str, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: Packed = packed_variants(CONTENT)[name]
    expected = LIKE_KAFKA[name] if name in LIKE_KAFKA else read_whole(packed)
    monkeypatch.setattr(decompression, "PIECE_BYTES", sizes[0])
    monkeypatch.setattr(decompression, "_PACKED_BYTES_AT_ONCE", sizes[1])
    found = outcome(decompressed_pieces(packed.data, packed.compression))
    assert found == expected


@pytest.mark.parametrize("compression", PACKED)
def test_a_stream_has_all_the_bytes(compression: Compression) -> None:
    random = Random(7)
    content = b"".join(
        random.choice((random.randbytes(300), bytes(90_000), b"some words " * 500))
        for _ in range(400)
    )
    packed = compress(content, compression)
    pieces = list(decompressed_pieces(packed, compression))
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= decompression.PIECE_BYTES


@pytest.mark.parametrize("compression", PACKED)
def test_a_stream_ends_where_it_is_to(compression: Compression) -> None:
    packed = compress(bytes(10_000_000), compression)
    check_size = up_to(8_000_000, compression)
    with pytest.raises(BatchTooLargeError, match="more than 8000000 bytes"):
        list(decompressed_pieces(packed, compression, check_size))


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("size", [0, 1, 5, 3_000_000])
def test_bytes_may_be_packed_in_pieces(compression: Compression, size: int) -> None:
    content = bytes(index % 251 for index in range(size))
    pieces = [content[start : start + 700_000] for start in range(0, size, 700_000)]
    packed = compress_pieces(pieces, compression)
    assert decompression.decompress(packed, compression) == content


def records_of(seed: int) -> list[RecordData]:
    random = Random(seed)
    return [
        RecordData(
            random.choice((None, b"", random.randbytes(random.choice((1, 63, 64, 300))))),
            random.choice((None, b"", b"key", bytes(200))),
            BASE_TIMESTAMP + random.choice((-5, 0, 1, 100, 2**40)),
            random.choice(((), (("h", b"x"),), (("h", None), ("", b"")))),
        )
        for _ in range(random.randrange(1, 12))
    ]


def read_at_once(data: bytes, count: int) -> list[Record] | None:
    try:
        return list(
            read_records(data, count=count, base_offset=BASE_OFFSET, base_timestamp=BASE_TIMESTAMP)
        )
    except CorruptBatchError:
        return None


def pieces_of(data: bytes, size: int, *, count: int, record_bytes_max: int = 2**31) -> RecordPieces:
    return RecordPieces(
        (data[start : start + size] for start in range(0, len(data), size)),
        count=count,
        base_offset=BASE_OFFSET,
        base_timestamp=BASE_TIMESTAMP,
        record_bytes_max=record_bytes_max,
    )


def records_in(run: Run) -> list[Record]:
    return list(
        read_records(
            run.data, count=run.record_count, base_offset=BASE_OFFSET, base_timestamp=BASE_TIMESTAMP
        )
    )


def read_in_pieces(data: bytes, size: int, count: int) -> list[Record] | None:
    try:
        runs = pieces_of(data, size, count=count).runs()
        return [record for run in runs for record in records_in(run)]
    except CorruptBatchError:
        return None


def outlined(data: bytes, size: int, count: int) -> list[RecordOutline] | None:
    found: list[RecordOutline] = []
    try:
        for part in pieces_of(data, size, count=count).runs_and_outlines():
            found += map(outline_of, records_in(part)) if isinstance(part, Run) else (part,)
    except CorruptBatchError:
        return None
    return found


@pytest.fixture(params=[0, 70, 2**20])
def outlined_bytes_min(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of a record above which only its outline is read."""
    size: int = request.param
    monkeypatch.setattr(record_runs, "PIECE_BYTES", size)
    return size


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
@pytest.mark.usefixtures("outlined_bytes_min")
def test_records_in_pieces_are_those_in_one(seed: int, size: int) -> None:
    records = records_of(seed)
    count = len(records)
    data = write_numbered(enumerate(records), BASE_TIMESTAMP).data
    expected = read_at_once(data, count)
    assert expected is not None
    assert read_in_pieces(data, size, count) == expected
    outlines = list(map(outline_of, expected))
    assert outlined(data, size, count) == outlines
    summary = summarize_all(
        pieces_of(data, size, count=count).runs_and_outlines(),
        base_offset=BASE_OFFSET,
        base_timestamp=BASE_TIMESTAMP,
    )
    assert summary == summary_of(outlines, BASE_OFFSET)


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.usefixtures("outlined_bytes_min")
def test_damage_in_pieces_is_that_in_one(seed: int) -> None:
    random = Random(seed)
    records = records_of(seed)
    data = bytearray(write_numbered(enumerate(records), BASE_TIMESTAMP).data)
    count = len(records) + random.choice((-1, 0, 0, 0, 1))
    change = random.randrange(3)
    if change == 0:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif change == 1:
        del data[random.randrange(len(data)) :]
    else:
        data += random.randbytes(random.randrange(1, 9))
    damaged = bytes(data)
    expected = read_at_once(damaged, count)
    outlines = None if expected is None else list(map(outline_of, expected))
    for size in (1, 30, 10_000):
        assert read_in_pieces(damaged, size, count) == expected
        assert outlined(damaged, size, count) == outlines


@given(st.binary(max_size=60), st.integers(0, 4), st.sampled_from([1, 3, 60]))
def test_any_bytes_in_pieces_are_read_as_in_one(data: bytes, count: int, size: int) -> None:
    assert read_in_pieces(data, size, count) == read_at_once(data, count)


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_record_that_is_too_large_is_found_before_it_is_read(size: int) -> None:
    values = (10, 90, 10)
    records = [RecordData(bytes(length), b"key", BASE_TIMESTAMP) for length in values]
    data = write_numbered(enumerate(records)).data
    runs = pieces_of(data, size, count=3, record_bytes_max=99).runs()
    assert len(records_in(next(runs))) == 1
    with pytest.raises(InvalidRecordError, match="100 bytes exceed"):
        next(runs)


@pytest.mark.parametrize("header_count", [HEADERS_MAX, HEADERS_MAX + 1])
def test_as_many_headers_are_passed_over_as_are_read(
    header_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_runs, "PIECE_BYTES", 0)
    record = RecordData(b"v", b"k", BASE_TIMESTAMP, [("", None)] * header_count)
    data = write_numbered(enumerate([record])).data
    assert (outlined(data, 1_000, 1) is None) == (read_at_once(data, 1) is None)
    assert (outlined(data, 1_000, 1) is None) == (header_count > HEADERS_MAX)
