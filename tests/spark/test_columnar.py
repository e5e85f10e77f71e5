"""Fields read from many records at once are those that the codecs read one by one."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.golden_data import metadata_directories
from tests.support.random_messages import random_message

from kvorum.metadata.errors import MetadataParseError
from kvorum.metadata.record_frame import decode_record, encode_record, record_type
from kvorum.spark.arrow_types import TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, timestamp_us
from kvorum.spark.columnar.arrow_values import timestamps
from kvorum.spark.columnar.batch_block import block_of
from kvorum.spark.columnar.body_columns import BodyColumn, body_columns
from kvorum.spark.columnar.record_places import Bounds, RecordRun, find_bounds, read_run
from kvorum.wire.apis import METADATA_RECORDS
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import fields_of, to_json
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    RecordBatch,
    RecordData,
    build_batch,
    read_batches,
)
from kvorum.wire.records.batch import HEADER_BYTES

ARROW_TYPES: dict[str, Any] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "[]int32": pa.list_(pa.int32()),
    "[]uuid": pa.list_(pa.string()),
}
WRONG_BYTES = 1000
SAMPLES = 12


def every_column() -> list[BodyColumn]:
    """Return a column for each field of each record type that is neither bytes nor structs."""
    return [
        BodyColumn(f"{key}.{field.json_name}", ARROW_TYPES[field.kind], {key: field.json_name})
        for key in METADATA_RECORDS
        for field in fields_of(record_type(key))
        if field.kind in ARROW_TYPES
    ]


def as_json(messages: Sequence[tuple[Message, int]]) -> list[tuple[int, dict[str, Any]]]:
    """Return the type of each message, and its fields by name."""
    return [(message.API_KEY or 0, to_json(message, version)) for message, version in messages]


def expected(decoded: Sequence[tuple[int, dict[str, Any]]], column: BodyColumn) -> list[Any]:
    return [fields.get(column.fields.get(key, "")) for key, fields in decoded]


def as_run(values: Sequence[bytes], **options: Any) -> RecordRun:
    """Return the run of batches with up to 50 records each."""
    data = bytearray()
    for base in range(0, len(values), 50):
        records = [RecordData(value, timestamp=1000 + base) for value in values[base : base + 50]]
        data += build_batch(records, BatchOptions(base_offset=base, **options))
    run = read_run(block_of(list(read_batches(data))))
    assert run is not None
    return run


@pytest.fixture(scope="module")
def samples() -> list[tuple[Message, int]]:
    """Return random messages of every record type and version, in no order."""
    random = Random(5)
    kinds = [record_type(key) for key in METADATA_RECORDS]
    made: list[tuple[Message, int]] = [
        (random_message(kind, version, random), version)
        for kind in kinds
        for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1)
        for _ in range(SAMPLES)
    ]
    random.shuffle(made)
    return made


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_every_field_of_every_type_and_version_is_what_the_codec_reads(
    samples: list[tuple[Message, int]], compression: Compression
) -> None:
    run = as_run([encode_record(*one) for one in samples], compression=compression)
    columns, decoded = every_column(), as_json(samples)
    for column, found in zip(columns, body_columns(run, columns), strict=True):
        assert found.to_pylist() == expected(decoded, column), column.name
    assert run.offsets.tolist() == list(range(len(samples)))
    assert {one.API_KEY for one, _ in samples} == set(METADATA_RECORDS)


def test_columns_are_equal_whatever_others_are_read(samples: list[tuple[Message, int]]) -> None:
    """A field's place is found whether or not the fields before it are wanted."""
    run = as_run([encode_record(*one) for one in samples])
    decoded = as_json(samples)
    for column in every_column():
        (found,) = body_columns(run, [column])
        assert found.to_pylist() == expected(decoded, column), column.name


def runs_of(path: Path) -> Iterator[list[RecordBatch]]:
    found: list[RecordBatch] = []
    for batch in read_batches(path.read_bytes()):
        if batch.is_control:
            if found:
                yield found
            found = []
        else:
            found.append(batch)
    if found:
        yield found


def test_logs_of_real_kafka_are_read_as_by_the_codec(golden_sets: Path) -> None:
    columns = every_column()
    counts: dict[str, int] = defaultdict(int)
    for directory in metadata_directories(golden_sets):
        for path in [*directory.glob("*.log"), *directory.glob("*.checkpoint")]:
            for batches in runs_of(path):
                run = read_run(block_of(batches))
                assert run is not None
                records = [record for batch in batches for record in batch.records()]
                decoded = as_json([decode_record(record.value or b"") for record in records])
                assert run.offsets.tolist() == [record.offset for record in records]
                assert run.timestamps.tolist() == [record.timestamp for record in records]
                for column, found in zip(columns, body_columns(run, columns), strict=True):
                    assert found.to_pylist() == expected(decoded, column), column.name
                counts[path.suffix] += len(records)
    assert min(counts.values()) > 100, counts
    assert set(counts) == {".log", ".checkpoint"}


def test_what_is_found_among_wrong_bytes_is_what_the_codec_finds(
    samples: list[tuple[Message, int]],
) -> None:
    """A record that the codec refuses need not be refused where no field beyond is wanted."""
    random = Random(11)
    columns = every_column()
    refused = read = 0
    for _ in range(WRONG_BYTES):
        value = bytearray(encode_record(*random.choice(samples)))
        place = random.randrange(3, len(value))
        if random.random() < 0.3:
            del value[place:]
        else:
            value[place] ^= 1 << random.randrange(8)
        try:
            message, version = decode_record(bytes(value))
        except MetadataParseError:
            refused += 1
            with suppress(MetadataParseError):
                everything(as_run([bytes(value)]), columns)
            continue
        read += 1
        found = everything(as_run([bytes(value)]), columns)
        decoded = as_json([(message, version)])
        assert found == [expected(decoded, column)[0] for column in columns]
    assert min(refused, read) > WRONG_BYTES // 10


def everything(run: RecordRun, columns: Sequence[BodyColumn]) -> list[Any]:
    return [found.to_pylist()[0] for found in body_columns(run, columns)]


def test_batches_that_hold_other_records_are_left_to_the_codec() -> None:
    (valid,) = read_batches(build_batch([RecordData(b"\x01\x14\x00")]))
    assert read_run(block_of([valid])) is not None
    for record in (
        RecordData(None),
        RecordData(b"\x01\x14\x00", key=b"key"),
        RecordData(b"\x01\x14\x00", headers=[("name", b"value")]),
        RecordData(b"\x02\x14\x00"),
        RecordData(b"\x01"),
    ):
        (batch,) = read_batches(build_batch([record]))
        assert read_run(block_of([valid, batch])) is None


def test_lengths_that_do_not_fit_are_left_to_the_codec() -> None:
    data = build_batch([RecordData(b"\x01\x14\x00"), RecordData(b"\x01\x14\x00")])
    random = Random(3)
    for _ in range(300):
        wrong = bytearray(data)
        wrong[random.randrange(61, len(wrong))] = random.randrange(256)
        (batch,) = read_batches(wrong)
        run = read_run(block_of([batch]))
        try:
            records = list(batch.records())
        except WireError:
            assert run is None
            continue
        if run is not None:
            assert run.offsets.tolist() == [record.offset for record in records]
            assert run.timestamps.tolist() == [record.timestamp for record in records]


def test_text_that_must_not_be_null_is_refused_as_by_the_codec() -> None:
    value = bytearray(encode_record(TopicRecord(name="orders", topic_id=bytes(16)), 0))
    value[3] = 0
    with pytest.raises(MetadataParseError, match="name"):
        decode_record(bytes(value))
    with pytest.raises(MetadataParseError, match="name"):
        everything(as_run([bytes(value)]), every_column())


def test_bytes_after_the_last_record_are_left_to_the_codec() -> None:
    data = bytearray(build_batch([RecordData(b"\x01\x14\x00"), RecordData(b"\x01\x14\x00")]))
    data[57:61] = (1).to_bytes(4, "big")
    (batch,) = read_batches(data)
    with pytest.raises(WireError, match="follow the last"):
        list(batch.records())
    assert read_run(block_of([batch])) is None


PADDING = bytes(16)


def bodies(random: Random, counts: list[int]) -> list[bytes]:
    """Return the records of batches, some of which are so long that a length takes three bytes."""
    sizes = (0, 1, 50, 60, 200, 9000)
    return [
        build_batch(
            [RecordData(key=None, value=bytes(random.choice(sizes))) for _ in range(count)]
        )[HEADER_BYTES:]
        for count in counts
    ]


def found(parts: list[bytes], counts: list[int]) -> Bounds | None:
    sizes = np.array([len(part) for part in parts], np.int64)
    ends = np.cumsum(sizes)
    return find_bounds(b"".join((*parts, PADDING)), ends - sizes, ends, np.array(counts, np.int64))


def one_by_one(parts: list[bytes]) -> list[tuple[int, int]]:
    """Return the bounds of all records, read by a loop that knows nothing of other batches."""
    places: list[tuple[int, int]] = []
    base = 0
    for part in parts:
        pos = 0
        while pos < len(part):
            length = shift = 0
            while True:
                byte = part[pos]
                length |= (byte & 0x7F) << shift
                shift, pos = shift + 7, pos + 1
                if byte < 0x80:
                    break
            places.append((base + pos, base + pos + (length >> 1)))
            pos += length >> 1
        base += len(part)
    return places


@pytest.mark.parametrize("batches", [1, 60, 255, 256, 600])
def test_records_of_few_and_many_batches_of_all_lengths_are_found(batches: int) -> None:
    random = Random(batches)
    counts = [random.choice((1, 2, 7, 90)) for _ in range(batches)]
    parts = bodies(random, counts)
    bounds = found(parts, counts)
    assert bounds is not None
    assert list(zip(bounds.starts.tolist(), bounds.ends.tolist(), strict=True)) == one_by_one(parts)


def test_a_batch_without_records_has_no_bounds() -> None:
    parts = bodies(Random(1), [2] * 300)
    bounds = found([*parts[:3], b"", *parts[3:]], [2, 2, 2, 0, *[2] * 297])
    assert bounds is not None
    assert list(zip(bounds.starts.tolist(), bounds.ends.tolist(), strict=True)) == one_by_one(parts)


@pytest.mark.parametrize("batches", [2, 400])
@pytest.mark.parametrize("change", [-1, 1, 2**31 - 10])
def test_a_number_of_records_that_does_not_fit_is_refused(batches: int, change: int) -> None:
    counts = [3] * batches
    parts = bodies(Random(2), counts)
    assert found(parts, [*counts[:-1], 3 + change]) is None
    assert found(parts, [3 + change, *counts[1:]]) is None


@pytest.mark.parametrize("batches", [2, 400])
def test_lengths_that_lead_elsewhere_are_refused(batches: int) -> None:
    counts = [3] * batches
    body = build_batch([RecordData(key=None, value=bytes(50))] * 3)[HEADER_BYTES:]
    parts = [body] * batches
    # Odd is negative; the longer one leads into the next batch.
    for wrong in (b"\x01", b"\x7e", b"\xff\xff\xff\xff\xff"):
        assert found([parts[0], wrong + parts[1][len(wrong) :], *parts[2:]], counts) is None


@pytest.mark.parametrize("batches", [2, 400])
def test_a_negative_length_is_refused_even_if_it_leads_to_the_end(batches: int) -> None:
    # One byte; then back by two, to that byte; then on from it to the end.
    body = bytes((1 << 1, 8 << 1, (2 << 1) - 1)) + bytes(7)
    assert found([body] * batches, [3] * batches) is None
    # Without its sign this one fits.
    assert found([b"\x03\x00"] * batches, [1] * batches) is None


SHOWN_MS = (0, -2, -86_400_001, TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX)
NOT_SHOWN_MS = (-1, TIMESTAMP_MS_MIN - 1, TIMESTAMP_MS_MAX + 1, -(2**63), 2**63 - 1)


def test_only_no_timestamp_and_years_that_spark_cannot_show_are_null() -> None:
    found: list[int | None] = timestamps(np.array([*SHOWN_MS, *NOT_SHOWN_MS])).to_pylist()
    expected = [one * 1000 for one in SHOWN_MS] + [None] * len(NOT_SHOWN_MS)
    assert found == expected
    assert [timestamp_us(one) for one in (*SHOWN_MS, *NOT_SHOWN_MS)] == expected
    shown: list[Any] = [pa.scalar(one * 1000, TIMESTAMP).as_py() for one in SHOWN_MS[-2:]]
    assert [one.year for one in shown] == [1, 9999]
