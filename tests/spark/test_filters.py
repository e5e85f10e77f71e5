"""Filters that are pushed down skip work and never change what a query finds."""

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

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
from tests.spark.log_rows import flip
from tests.spark.spark_filters import kept, random_filters
from tests.support.spark.small_logs import LOG_FOLDER, START_MS, topic_id, write_log

from kvorum.spark.files.damage import Mode
from kvorum.spark.files.find import METADATA_SEARCH, find_files
from kvorum.spark.files.ranges import plan_ranges
from kvorum.spark.metadata_source.columns import DEFAULT_COLUMNS, columns_named
from kvorum.spark.metadata_source.filters import NO_FILTER, RowFilter
from kvorum.spark.metadata_source.range_rows import Query, arrow_batches
from kvorum.spark.metadata_source.source import PushingReader, parse_options
from kvorum.wire.uuid_text import uuid_to_text

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


def rows(folder: Path, row_filter: RowFilter, range_bytes: int) -> tuple[list[dict[str, Any]], int]:
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
        whole, _ = rows(folder, NO_FILTER, range_bytes)
        for _ in range(FILTERS):
            filters = random_filters(random, VALUES, TEXTS)
            found, _ = rows(folder, pushed(filters), range_bytes)
            assert kept(found, filters) == kept(whole, filters), filters
            skipped += len(found) < len(whole)
    assert skipped > SEEDS * FILTERS * 0.6


def test_filters_leave_out_ranges_by_node_offset_and_path(tmp_path: Path) -> None:
    for node in (1, 2):
        write_log(tmp_path / f"node-{node}", Random(node), node=node)
    _, every = rows(tmp_path, NO_FILTER, 2**30)
    _, of_node = rows(tmp_path, pushed([EqualTo(("node_id",), 2)]), 2**30)
    assert of_node * 2 == every
    (one,) = (tmp_path / "node-1" / LOG_FOLDER).glob("*0.log")
    assert rows(tmp_path, pushed([EqualTo(("path",), str(one))]), 2**30)[1] == 1
    low = rows(tmp_path, pushed([LessThan(("offset",), 1)]), 2**30)[1]
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
