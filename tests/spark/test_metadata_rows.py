"""Rows of ranges, without Spark: columns, damage by mode, records that cannot be read."""

import logging
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    IsNotNull,
    LessThan,
    Not,
    StringContains,
)
from tests.spark.spark_filters import flip, kept, present, random_filters
from tests.support.spark.small_logs import LOG_FOLDER, START_MS, topic_id, write_log

from kvorum.log_files.find import METADATA_SEARCH, find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.metadata.record_frame import encode_record
from kvorum.spark.damage_modes import Mode
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.metadata_source.columns import (
    COLUMNS,
    DEFAULT_COLUMNS,
    JSON_COLUMN,
    STRUCT_COLUMNS,
    columns_named,
)
from kvorum.spark.metadata_source.filters import NO_FILTER, RowFilter
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import ROWS_MAX, arrow_batches
from kvorum.spark.metadata_source.source import PushingReader, parse_options
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import BatchOptions, RecordData, build_batch, build_data_batch
from kvorum.wire.uuid_text import uuid_to_text

TOPIC_ID = bytes(range(16))
TIME_MS = 1_700_000_000_123
ALL = (*DEFAULT_COLUMNS, JSON_COLUMN, *STRUCT_COLUMNS)


def query(*names: str, mode: Mode = Mode.FAILFAST) -> Query:
    return Query(columns_named(names) if names else ALL, NO_FILTER, mode, {})


def rows(path: Path, *names: str, mode: Mode = Mode.FAILFAST) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for unit in plan_ranges(find_files([str(path)], METADATA_SEARCH)):
        for each in arrow_batches(unit, query(*names, mode=mode)):
            found += each.to_pylist()
    return found


def segment(folder: Path, data: bytes, offset: int = 0) -> Path:
    path = folder / f"{offset:020}.log"
    path.write_bytes(data)
    return path


def batch(*values: bytes, base_offset: int = 5) -> bytes:
    return build_data_batch(values, base_offset=base_offset, epoch=3, timestamp_ms=TIME_MS)


def test_a_row_tells_what_its_record_is_about(tmp_path: Path) -> None:
    record = encode_record(TopicRecord(name="größe", topic_id=TOPIC_ID), 0)
    (row,) = rows(segment(tmp_path, batch(record), 5))
    assert int(row.pop("timestamp").timestamp() * 1000) == TIME_MS
    assert present(row) == {
        "path": str(tmp_path / f"{5:020}.log"), "file_kind": "segment", "offset": 5, "epoch": 3,
        "record_kind": "metadata", "type": "TOPIC_RECORD", "version": 0, "topic_name": "größe",
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "json": '{"name":"größe","topicId":"AAECAwQFBgcICQoLDA0ODw"}',
        "topic_record": {"name": "größe", "topic_id": "AAECAwQFBgcICQoLDA0ODw"},
    }  # fmt: skip


def test_what_a_change_leaves_as_it_was_is_null(tmp_path: Path) -> None:
    change = PartitionChangeRecord(partition_id=2, topic_id=TOPIC_ID, isr=[1, 2], leader=-1)
    same = PartitionChangeRecord(partition_id=2, topic_id=TOPIC_ID)
    values = [encode_record(change, 0), encode_record(same, 0)]
    first, second = rows(segment(tmp_path, batch(*values), 5))
    names = ("partition_id", "leader", "isr", "replicas")
    assert [first[name] for name in names] == [2, -1, [1, 2], None]
    assert [second[name] for name in names] == [2, None, None, None]
    assert second["partition_change_record"]["leader"] is None


def test_numbers_are_written_as_kafkas_tools_write_them(tmp_path: Path) -> None:
    entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    quota = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1e7)
    (row,) = rows(segment(tmp_path, batch(encode_record(quota, 0)), 5))
    assert '"value":1.0E7,' in row["json"]
    assert row["name"] == "producer_byte_rate"
    assert row["client_quota_record"]["entity"] == [{"entity_type": "user", "entity_name": None}]


def test_an_empty_segment_has_no_rows(tmp_path: Path) -> None:
    assert rows(segment(tmp_path, b"")) == []


GOOD = encode_record(TopicRecord(name="t", topic_id=TOPIC_ID), 0)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b"\x01\x7f\x00", "type 127"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x02\x00\x01", "TopicRecord"),
        (b"\x01\x02\x09\x01", "version 9"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_the_others_are_read(
    tmp_path: Path, damage: bytes, reason: str
) -> None:
    wrong = batch(damage, base_offset=6)
    file = segment(tmp_path, batch(GOOD) + wrong + batch(GOOD, GOOD, base_offset=7), 5)
    with pytest.raises(DamagedFileError, match=reason) as caught:
        rows(file)
    assert (caught.value.file, caught.value.offset) == (str(file), 6)
    found = rows(file, "offset", "type", "topic_id", "damage", mode=Mode.PERMISSIVE)
    assert [row["offset"] for row in found] == [5, 6, 7, 8]
    assert [row["type"] for row in found] == ["TOPIC_RECORD", None, *["TOPIC_RECORD"] * 2]
    assert reason in found[1]["damage"]
    kept = rows(file, "offset", "topic_id", mode=Mode.DROPMALFORMED)
    assert [row["offset"] for row in kept] == [5, 7, 8]


def test_a_torn_tail_ends_the_reading_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sound = batch(GOOD)
    file = segment(tmp_path, sound + batch(GOOD, base_offset=6)[:-3], 5)
    with caplog.at_level(logging.WARNING):
        assert [row["offset"] for row in rows(file, "offset")] == [5]
    assert f"{file}: offset 6: torn tail at byte {len(sound)}" in caplog.text
    permissive = rows(file, "offset", "damage", mode=Mode.PERMISSIVE)
    assert [row["offset"] for row in permissive] == [5, 6]
    assert permissive[1]["damage"].startswith(f"torn tail at byte {len(sound)}: ")


def test_zeros_at_the_end_of_the_last_segment_are_a_torn_tail(tmp_path: Path) -> None:
    file = segment(tmp_path, batch(GOOD) + bytes(4096), 5)
    assert [row["offset"] for row in rows(file, "offset")] == [5]


def test_a_last_batch_with_a_wrong_checksum_is_damage_and_no_torn_tail(tmp_path: Path) -> None:
    data = bytearray(batch(GOOD) + batch(GOOD, base_offset=6))
    data[-1] ^= 1
    with pytest.raises(DamagedFileError, match="checksum"):
        rows(segment(tmp_path, bytes(data), 5), "offset")


def test_a_segment_that_is_deleted_after_the_planning_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = write_log(tmp_path, Random(3))
    units = plan_ranges(find_files([str(tmp_path)], METADATA_SEARCH))
    name = log.segments[0]
    unit = next(each for each in units if each.file.path.endswith(name))
    (log.inner / name).unlink()
    with pytest.raises(DamagedFileError, match=rf"{name}: damaged at offset 0: deleted"):
        list(arrow_batches(unit, query("offset")))
    (found,) = arrow_batches(unit, query("offset", "damage", mode=Mode.PERMISSIVE))
    (row,) = found.to_pylist()
    assert row["damage"].endswith(f"offsets 0 to {int(log.segments[1][:20]) - 1} are missing")
    with caplog.at_level(logging.WARNING):
        assert list(arrow_batches(unit, query("offset", mode=Mode.DROPMALFORMED))) == []
    assert "deleted" in caplog.text
    assert "1 damaged places were left out" in caplog.text


def test_the_error_travels_between_processes() -> None:
    error = DamagedFileError(file="f.log", offset=7, reason="torn")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.file, again.offset) == (str(error), "f.log", 7)


def test_arrow_batches_are_bounded_and_missing_times_are_null(tmp_path: Path) -> None:
    value = encode_record(NoOpRecord(), 0)
    data = build_batch([RecordData(value, None, -1)] * (ROWS_MAX + 1), BatchOptions())
    (unit,) = plan_ranges(find_files([str(segment(tmp_path, data))]))
    batches = list(arrow_batches(unit, query("offset", "timestamp")))
    assert [each.num_rows for each in batches] == [ROWS_MAX, 1]
    assert batches[1].column("timestamp").to_pylist() == [None]
    late = build_batch([RecordData(value, None, 2**62)], BatchOptions())
    assert rows(segment(tmp_path, late), "timestamp") == [{"timestamp": None}]


@pytest.mark.parametrize("seed", range(6))
def test_columns_do_not_depend_on_the_others(tmp_path: Path, seed: int) -> None:
    """Headers, frames, bodies and messages give the same rows."""
    random = Random(seed)
    write_log(tmp_path, random)
    whole = rows(tmp_path)
    assert {row["type"] for row in whole} >= {"PARTITION_RECORD", "LEADER_CHANGE"}
    for _ in range(5):
        names = random.sample(sorted(COLUMNS), random.randrange(1, 6))
        assert rows(tmp_path, *names) == [{name: row[name] for name in names} for row in whole]


@pytest.mark.parametrize("index", [b"", b"\0" * 4096, b"\xff" * 64, bytes(range(80))])
def test_a_lying_index_only_means_fewer_ranges(tmp_path: Path, index: bytes) -> None:
    log = write_log(tmp_path, Random(5))
    expected = rows(tmp_path)
    for path in log.inner.glob("*.index"):
        path.write_bytes(index)
    units = plan_ranges(find_files([str(log.inner)], METADATA_SEARCH), range_bytes=100)
    assert len([unit for unit in units if unit.file.path.endswith(".log")]) == len(log.segments)
    parts = [part for unit in units for part in arrow_batches(unit, query())]
    assert pa.Table.from_batches(parts).to_pylist() == expected


SEEDS, FILTERS = 4, 8


class Reader(PushingReader):
    """The reader, with what it made of the filters."""

    @property
    def made(self) -> RowFilter:
        return self._filter


def pushed(filters: list[Filter]) -> RowFilter:
    reader = Reader(parse_options({"path": "p"}), DEFAULT_COLUMNS)
    assert list(reader.pushFilters(filters)) == filters, "Spark applies each once more"
    return reader.made


def rows_and_ranges(
    folder: Path, row_filter: RowFilter, range_bytes: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that reach Spark, and the number of ranges that are read."""
    units = plan_ranges(find_files([str(folder)], METADATA_SEARCH), range_bytes=range_bytes)
    chosen = [unit for unit in units if row_filter.admits_range(unit)]
    query = Query(DEFAULT_COLUMNS, row_filter, Mode.PERMISSIVE, {})
    batches = [batch for unit in chosen for batch in arrow_batches(unit, query)]
    return [row for batch in batches for row in batch.to_pylist()], len(chosen)


def time(random: Random) -> datetime:
    return datetime.fromtimestamp((START_MS + random.randrange(40_000)) / 1000, UTC)


VALUES: dict[str, Callable[[Random], Any]] = {
    "offset": lambda random: random.randrange(50),
    "epoch": lambda random: random.randrange(12),
    "timestamp": time,
    "type": lambda random: random.choice(
        ["TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "LEADER_CHANGE", "NONE"]
    ),
    "record_kind": lambda random: random.choice(["metadata", "control"]),
    "file_kind": lambda random: random.choice(["segment", "snapshot"]),
    "topic_id": lambda random: random.choice([uuid_to_text(topic_id(random.randrange(6))), "x"]),
    "topic_name": lambda random: random.choice(["topic-1", "topic-4", "", "none", "\ufffd"]),
    "partition_id": lambda random: random.randrange(5),
    "broker_id": lambda random: random.randrange(7),
    "node_id": lambda random: random.randrange(1, 4),
    "cluster_id": lambda random: random.choice(["cluster-a", "cluster-b"]),
}
TEXTS = ("type", "record_kind", "file_kind", "topic_id", "topic_name", "cluster_id")


@pytest.mark.parametrize("is_damaged", [False, True])
def test_no_filter_changes_what_a_query_finds(tmp_path: Path, is_damaged: bool) -> None:
    skipped = 0
    for seed in range(SEEDS):
        random = Random(seed)
        folder = tmp_path / str(seed)
        logs = [write_log(folder / f"node-{node}", random, node=node) for node in (1, 2)]
        if is_damaged:
            for log in logs:
                flip(log, random)
        range_bytes = random.choice([500, 2**30])
        whole, _ = rows_and_ranges(folder, NO_FILTER, range_bytes)
        for _ in range(FILTERS):
            filters = random_filters(random, VALUES, TEXTS)
            found, _ = rows_and_ranges(folder, pushed(filters), range_bytes)
            assert kept(found, filters) == kept(whole, filters), filters
            skipped += len(found) < len(whole)
    assert skipped > SEEDS * FILTERS * 0.6


def test_filters_leave_out_ranges_by_node_offset_and_path(tmp_path: Path) -> None:
    for node in (1, 2):
        write_log(tmp_path / f"node-{node}", Random(node), node=node)
    _, every = rows_and_ranges(tmp_path, NO_FILTER, 2**30)
    _, of_node = rows_and_ranges(tmp_path, pushed([EqualTo(("node_id",), 2)]), 2**30)
    assert of_node * 2 == every
    (one,) = (tmp_path / "node-1" / LOG_FOLDER).glob("*0.log")
    assert rows_and_ranges(tmp_path, pushed([EqualTo(("path",), str(one))]), 2**30)[1] == 1
    low = rows_and_ranges(tmp_path, pushed([LessThan(("offset",), 1)]), 2**30)[1]
    assert low == 4, "two first segments and two snapshots"


def test_filters_that_cannot_be_used_are_left_to_spark() -> None:
    unusable: list[Filter] = [
        IsNotNull(("type",)), Not(EqualTo(("type",), "x")), StringContains(("path",), "x"),
        EqualTo(("name",), "x"), EqualTo(("topic_record", "name"), "x"), EqualTo(("offset",), None),
        EqualTo(("offset",), "7"), GreaterThan(("timestamp",), datetime(2026, 1, 1)),  # noqa: DTZ001 - has no zone on purpose
    ]  # fmt: skip
    assert pushed(unusable) == NO_FILTER


def test_a_filter_on_types_decodes_no_other_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path, Random(2))
    seen: set[int] = set()
    module: Any = import_module(arrow_batches.__module__)

    decoded = module.body_columns

    def watched(run: Any, columns: Any) -> Any:
        seen.update(run.types.tolist())
        return decoded(run, columns)

    monkeypatch.setattr(module, "body_columns", watched)
    (unit, *_) = plan_ranges(find_files([str(log.inner / log.segments[1])]))
    row_filter = pushed([EqualTo(("type",), "PARTITION_RECORD")])
    list(arrow_batches(unit, Query(columns_named(["leader"]), row_filter, Mode.FAILFAST, {})))
    assert seen == {3}
