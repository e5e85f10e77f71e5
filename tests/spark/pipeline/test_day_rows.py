"""Rows on their way into files: in memory only up to a bound."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.pipeline.runs import rows_of

from kvorum.spark.pipeline import day_rows
from kvorum.spark.pipeline.output_files import LocalOutput
from kvorum.spark.pipeline.staged_files import Stage

BATCH_COUNT = 400
ROWS_PER_BATCH = 50
BOUND = 40 * ROWS_PER_BATCH * 8
"""The bytes of 40 batches: 20 are written whenever there are more."""


def test_the_largest_collections_become_files_when_too_much_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_rows, "HELD_BYTES_MAX", BOUND)
    stage = Stage(LocalOutput(), str(tmp_path), "_staging", 1)
    rows = day_rows.DayRows(stage, "cluster_id=c")
    for number in range(BATCH_COUNT):
        first = number * ROWS_PER_BATCH
        values = list(range(first, first + ROWS_PER_BATCH))
        batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.int64())})
        rows.add_batch("numbers", 20_000 + number % 2, batch)
    rows.finish()
    assert BATCH_COUNT / 40 <= len(stage.staged) <= BATCH_COUNT / 10
    for file in stage.staged:
        LocalOutput().move(f"{tmp_path}/{file.source}", f"{tmp_path}/{file.target}")
    found = rows_of(tmp_path, "numbers")
    assert sorted(row["value"] for row in found) == list(range(BATCH_COUNT * ROWS_PER_BATCH))
