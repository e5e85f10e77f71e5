"""Rows of segments in the message formats 0 and 1 are what kafka-dump-log and the codec read."""

import re
import zlib
from pathlib import Path
from random import Random

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, LessThanOrEqual
from tests.spark.spark_filters import (
    after_one_flipped_bit,
    kept,
    milliseconds,
    pushed,
    rows_of,
    size,
)
from tests.spark.spark_filters import rows as filtered_rows

from kvorum.log_files.find import find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.spark.columnar.range_reader import read_range
from kvorum.spark.damage_modes import Mode
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.log_source.filters import NO_FILTER
from kvorum.wire.records.legacy import LegacyMessage, read_entries

OUTER = re.compile(r"(?:baseOffset|offset): .* magic: (?P<magic>\d) compresscodec: (?P<codec>\w+) ")
INNER = re.compile(
    r"\| offset: (?P<offset>\d+) (?P<kind>\w+): (?P<time>-?\d+) "
    r"keySize: (?P<key>-?\d+) valueSize: (?P<value>-?\d+)"
)
ALWAYS_NULL = (
    *("leader_epoch", "producer_id", "producer_epoch", "sequence"),
    *("transaction", "control_type", "damage"),
)
DAMAGES = 250


def segments(golden_sets: Path) -> list[Path]:
    found = sorted(golden_sets.glob("legacy-formats/*/*.log"))
    assert len(found) == 10
    return found


def test_every_record_is_the_one_that_the_dump_of_real_kafka_shows(golden_sets: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for segment in segments(golden_sets):
        rows = iter(rows_of([segment], has_gaps=False))
        outer: dict[str, str] = {}
        text = segment.parent / "dumps" / f"{segment.name}.print.txt"
        for line in text.read_bytes().decode(errors="replace").split("\n"):
            if start := OUTER.match(line.replace("compressionCodec", "compresscodec")):
                outer = start.groupdict()
                seen.add((outer["magic"], outer["codec"]))
            if (inner := INNER.match(line)) is None:
                continue
            row = next(rows)
            assert row["offset"] == int(inner["offset"])
            has_times = inner["kind"] != "NoTimestampType"
            assert row["timestamp_type"] == (inner["kind"] if has_times else None)
            assert milliseconds(row["timestamp"]) == int(inner["time"])
            assert size(row["key"]) == int(inner["key"])
            assert size(row["value"]) == int(inner["value"])
            assert row["compression"] == outer["codec"]
            if outer["magic"] != "2":
                assert [row[name] for name in ALWAYS_NULL] == [None] * len(ALWAYS_NULL)
                assert row["headers"] == []
        assert next(rows, None) is None
    codecs = ("none", "gzip", "snappy", "lz4")
    assert seen >= {(magic, codec) for magic in "01" for codec in codecs} | {("2", "none")}


def test_keys_and_values_are_those_that_the_codec_reads(golden_sets: Path) -> None:
    for segment in segments(golden_sets):
        stored = [
            (record.offset, record.key, record.value)
            for entry in read_entries(segment.read_bytes())
            for record in entry.records()
        ]
        assert [(row["offset"], row["key"], row["value"]) for row in rows_of([segment])] == stored


def test_no_damaged_byte_changes_a_record_or_loses_one_unsaid(
    golden_sets: Path, tmp_path: Path
) -> None:
    """With any bit wrong each record is as it was, or a damage covers its offset."""
    random = Random(3)
    sources = segments(golden_sets)
    named = 0
    for number in range(DAMAGES):
        segment = random.choice(sources)
        lost, damages = after_one_flipped_bit(segment, random, tmp_path / str(number))
        assert not lost or min(lost) in {row["offset"] for row in damages}, (segment, damages)
        assert not lost or not any("torn" in row["damage"] for row in damages), damages
        named += bool(lost)
    assert named > DAMAGES // 2


def test_a_message_that_the_files_end_cuts_off_is_a_torn_tail(
    golden_sets: Path, tmp_path: Path
) -> None:
    for segment in segments(golden_sets):
        data = segment.read_bytes()
        last = list(read_entries(data))[-1]
        if not isinstance(last, LegacyMessage):
            continue
        path = tmp_path / segment.parent.name / segment.name
        path.parent.mkdir()
        for end in (last.position + 5, last.position + 20, len(data) - 1):
            path.write_bytes(data[:end])
            whole = rows_of([path])
            found = rows_of([path], mode=Mode.PERMISSIVE)
            assert found[: len(whole)] == whole, "a torn tail ends no query"
            (torn,) = found[len(whole) :]
            assert torn["damage"].startswith("torn tail")


def test_a_wrapper_whose_messages_cannot_be_read_is_damage(
    golden_sets: Path, tmp_path: Path
) -> None:
    (segment,) = golden_sets.glob("legacy-formats/magic1-gzip-0/*.log")
    first, second, *_ = read_entries(segment.read_bytes())
    assert isinstance(second, LegacyMessage)
    path = tmp_path / segment.name
    # An inner message whose checksum is wrong, in a wrapper whose own checksum is right.
    plain = bytearray(b"".join(bytes(message.data) for message in second.records()))
    plain[-1] ^= 1
    path.write_bytes(bytes(first.data) + wrapper_of(bytes(plain), second))
    (damage,) = [row for row in rows_of([path], mode=Mode.PERMISSIVE) if row["damage"]]
    assert damage["offset"] == first.last_offset + 1
    assert "the checksum of message" in damage["damage"]
    with pytest.raises(DamagedFileError):
        rows_of([path])


def wrapper_of(plain: bytes, like: LegacyMessage) -> bytes:
    packed = zlib.compress(plain, wbits=31)
    body = b"\x01\x01" + like.timestamp.to_bytes(8, "big") + b"\xff\xff\xff\xff"
    body += len(packed).to_bytes(4, "big") + packed
    checked = zlib.crc32(body).to_bytes(4, "big") + body
    return like.offset.to_bytes(8, "big") + len(checked).to_bytes(4, "big") + checked


def test_filters_change_nothing(golden_sets: Path) -> None:
    folder = golden_sets / "legacy-formats"
    whole = filtered_rows(folder, NO_FILTER, Mode.FAILFAST, 2**30)
    cases: list[Filter] = [
        EqualTo(("compression",), "gzip"),
        EqualTo(("timestamp_type",), "LogAppendTime"),
        EqualTo(("producer_id",), 1),
        EqualTo(("topic",), "mixed"),
        GreaterThan(("offset",), 3),
        LessThanOrEqual(("offset",), 2),
    ]
    for given in cases:
        found = filtered_rows(folder, pushed([given]), Mode.FAILFAST, 2**30)
        assert kept(found, [given]) == kept(whole, [given]), given
        assert len(found) < len(whole), given


def test_metadata_logs_have_no_old_formats(golden_sets: Path) -> None:
    (unit,) = plan_ranges(find_files([str(segments(golden_sets)[0])]))
    (damage,) = read_range(unit)
    assert "batch format 0 instead of 2" in str(damage)
