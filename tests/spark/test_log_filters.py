"""Filters that are pushed down to kvorum-log skip work and never change what a query finds."""

import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.datasource import EqualNullSafe, EqualTo, Filter, GreaterThan, IsNull, Not
from tests.spark.spark_filters import kept, pushed, random_filters, rows, with_checksum

from kvorum.log_files.file_systems import BLOCK_BYTES
from kvorum.spark.damage_modes import Mode
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.log_source.filters import NO_FILTER
from kvorum.storage.names import offset_name
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecord,
    ControlRecordType,
    RecordData,
    build_batch,
    encode_control_record,
)

START_MS = 1_700_000_000_000
BEFORE_1970_MS = 86_400_001
LOGS, FILTERS = 4, 40
TOPICS = ("orders", "payments")
LOG_APPEND_TIME = 0x08
MIB = 1024 * 1024


def random_batch(random: Random, offset: int) -> bytes:
    """Return a batch, with or without a producer; its transactions need not make sense."""
    producer = random.choice([-1, 7, 8])
    is_marker = producer > 0 and random.random() < 0.2
    options = BatchOptions(
        base_offset=offset,
        partition_leader_epoch=offset // 10,
        compression=Compression.NONE if is_marker else random.choice(list(Compression)),
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else random.randrange(3),
        base_sequence=random.choice([0, 5, 2**31 - 2]) if producer > 0 and not is_marker else -1,
        is_transactional=is_marker or (producer > 0 and random.random() < 0.5),
        is_control=is_marker,
    )
    if is_marker:
        kind = random.choice([ControlRecordType.COMMIT, ControlRecordType.ABORT])
        control = ControlRecord(kind, EndTxnMarker(coordinator_epoch=1))
        return build_batch([encode_control_record(control, START_MS)], options)
    records = [
        RecordData(
            random.randbytes(4),
            key=random.choice([None, b"key"]),
            timestamp=random.choice([-1, START_MS + random.randrange(40_000), -BEFORE_1970_MS]),
            headers=random.choice([[], [("name", b"value")]]),
        )
        for _ in range(random.randrange(1, 5))
    ]
    return stamped(build_batch(records, options), random)


def stamped(batch: bytes, random: Random) -> bytes:
    """Return the batch, sometimes as a broker that sets the time leaves it."""
    if random.random() < 0.7:
        return batch
    data = bytearray(batch)
    data[22] |= LOG_APPEND_TIME
    return with_checksum(data)


def with_unreadable_header(offset: int) -> bytes:
    """Return a batch with a right checksum, whose second record has a header that does not fit."""
    records = [
        RecordData(b"a", timestamp=START_MS),
        RecordData(b"b", timestamp=START_MS, headers=[("name", b"value")]),
    ]
    data = bytearray(build_batch(records, BatchOptions(base_offset=offset)))
    data[data.index(b"name") - 1] = 0x7E
    return with_checksum(data)


def write_logs(folder: Path, random: Random, *, is_damaged: bool) -> None:
    for topic in TOPICS:
        for partition in range(2):
            directory = folder / f"{topic}-{partition}"
            directory.mkdir(parents=True)
            write_segments(directory, random, is_damaged=is_damaged)


def write_segments(directory: Path, random: Random, *, is_damaged: bool) -> None:
    offset = 0
    for _ in range(2):
        data = bytearray()
        base = offset
        for _ in range(12):
            batch = random_batch(random, offset)
            if is_damaged and random.random() < 0.1:
                batch = with_unreadable_header(offset)
            data += batch
            # Compaction leaves gaps.
            offset += int.from_bytes(batch[23:27], "big") + 1 + random.choice([0, 0, 3])
        if is_damaged:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        (directory / offset_name(base, ".log")).write_bytes(data)


VALUES: dict[str, Callable[[Random], Any]] = {
    "offset": lambda random: random.randrange(60),
    "leader_epoch": lambda random: random.randrange(7),
    "timestamp": lambda random: datetime.fromtimestamp(
        (START_MS + random.randrange(40_000)) / 1000, UTC
    ),
    "producer_id": lambda random: random.choice([7, 8, -1]),
    "producer_epoch": lambda random: random.randrange(3),
    "sequence": lambda random: random.choice([0, 1, 6, 2**31 - 1, -1]),
    "partition": lambda random: random.randrange(3),
    "node_id": lambda random: random.randrange(3),
    "topic": lambda random: random.choice([*TOPICS, "none"]),
    "timestamp_type": lambda random: random.choice(["CreateTime", "LogAppendTime", "none"]),
    "compression": lambda random: random.choice([*(one.name.lower() for one in Compression), ""]),
    "transaction": lambda random: random.choice(["committed", "aborted", "open", ""]),
    "control_type": lambda random: random.choice(["COMMIT", "ABORT", ""]),
}
TEXTS = ("topic", "timestamp_type", "compression", "transaction", "control_type")


@pytest.mark.parametrize(
    ("is_damaged", "mode"),
    [(False, Mode.FAILFAST), (True, Mode.PERMISSIVE), (True, Mode.DROPMALFORMED)],
)
def test_no_filter_changes_what_a_query_finds(tmp_path: Path, is_damaged: bool, mode: Mode) -> None:
    skipped = 0
    for seed in range(LOGS):
        random = Random(seed)
        folder = tmp_path / str(seed)
        write_logs(folder, random, is_damaged=is_damaged)
        range_bytes = random.choice([500, 2**30])
        whole = rows(folder, NO_FILTER, mode, range_bytes)
        for _ in range(FILTERS):
            filters = random_filters(random, VALUES, TEXTS)
            found = rows(folder, pushed(filters), mode, range_bytes)
            assert kept(found, filters) == kept(whole, filters), (seed, filters)
            skipped += len(found) < len(whole)
    assert skipped > LOGS * FILTERS * 0.6


def test_a_batch_that_is_left_out_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [
        BatchOptions(base_offset=base, compression=Compression.GZIP, producer_id=producer)
        for base, producer in ((0, 1), (1, 2), (2, 1))
    ]
    (tmp_path / "orders-0").mkdir()
    parts = [build_batch([RecordData(b"x" * 100, timestamp=START_MS)], each) for each in options]
    (tmp_path / "orders-0" / offset_name(0, ".log")).write_bytes(b"".join(parts))
    module: Any = import_module("kvorum.spark.columnar.record_places")
    unpacked: list[int] = []
    unpack = module.decompress

    def watched(*arguments: Any, **named: Any) -> Any:
        unpacked.append(1)
        return unpack(*arguments, **named)

    monkeypatch.setattr(module, "decompress", watched)
    counts: list[tuple[Filter, int]] = [
        (EqualTo(("producer_id",), 2), 1),
        (GreaterThan(("offset",), 1), 2),
        (EqualTo(("topic",), "payments"), 0),
        (EqualTo(("transaction",), "open"), 0),
        (EqualTo(("control_type",), "COMMIT"), 0),
    ]
    for given, count in counts:
        unpacked.clear()
        rows(tmp_path, pushed([given]), Mode.FAILFAST, 2**30)
        assert len(unpacked) == count, given


def test_what_a_filter_leaves_out_does_not_stay_in_memory(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with (tmp_path / "orders-0" / offset_name(0, ".log")).open("wb") as segment:
        for offset in range(0, 64, 2):
            segment.write(build_batch([RecordData(bytes(MIB))], BatchOptions(base_offset=offset)))
            wanted = BatchOptions(base_offset=offset + 1, producer_id=7, base_sequence=offset)
            segment.write(build_batch([RecordData(b"wanted")], wanted))
    row_filter = pushed([EqualTo(("producer_id",), 7)])
    tracemalloc.start()
    try:
        found = rows(tmp_path, row_filter, Mode.FAILFAST, 2**30)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [row["value"] for row in found] == [b"wanted"] * 32
    assert peak_bytes < 3 * BLOCK_BYTES


def test_damage_outside_of_what_is_asked_for_ends_no_query(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    good = build_batch([RecordData(b"good")], BatchOptions(base_offset=2))
    (tmp_path / "orders-0" / offset_name(0, ".log")).write_bytes(with_unreadable_header(0) + good)
    (found,) = rows(tmp_path, pushed([EqualTo(("offset",), 2)]), Mode.FAILFAST, 2**30)
    assert found["value"] == b"good"
    with pytest.raises(DamagedFileError, match="damaged at offset 0"):
        rows(tmp_path, pushed([EqualTo(("offset",), 0)]), Mode.FAILFAST, 2**30)


def test_filters_that_cannot_be_used_are_left_to_spark() -> None:
    unusable: list[Filter] = [
        EqualNullSafe(("producer_id",), None),
        IsNull(("transaction",)),
        Not(EqualTo(("offset",), 1)),
        EqualTo(("key",), b"key"),
        EqualTo(("offset",), "1"),
    ]
    assert pushed(unusable) == NO_FILTER
