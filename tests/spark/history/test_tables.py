"""The tables: their schemas, rows as Arrow batches, and what docs/spark/tables.md says of them."""

import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from tests.spark.history.random_logs import random_log
from tests.support.source_tree import ROOT

from kvorum.history import HISTORY_TABLES, STATE_TABLES, LogRecord, MetadataHistory
from kvorum.history.tables import QuorumEpochRow
from kvorum.spark.arrow_schemas import arrow_schema, record_batch
from kvorum.spark.pipeline.tables import OWN_TABLES
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage

DOCUMENT = ROOT / "docs" / "spark" / "tables.md"
TABLES = {**HISTORY_TABLES, **STATE_TABLES}
DOCUMENTED = {**TABLES, **OWN_TABLES}
COLUMN = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (.+) \| (.+) \|$")
NAMES = {
    "timestamp[us, tz=UTC]": "timestamp", "list<item: ": "array<", ": ": " ", " not null": "",
    "int32": "int", "int64": "bigint", "bool": "boolean",
}  # fmt: skip


def type_name(stored: pa.DataType) -> str:
    text = str(stored)
    for arrow, spark in NAMES.items():
        text = text.replace(arrow, spark)
    return text


def documented_columns(table: str) -> list[tuple[str, str]]:
    _, _, section = DOCUMENT.read_text("utf-8").partition(f"\n### `{table}`\n")
    body = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    return [(match[1], match[2]) for line in body.splitlines() if (match := COLUMN.match(line))]


@pytest.mark.parametrize("table", DOCUMENTED)
def test_the_document_lists_the_columns_of_each_table(table: str) -> None:
    schema = arrow_schema(DOCUMENTED[table])
    columns = zip(schema.names, map(type_name, schema.types), strict=True)
    assert documented_columns(table) == list(columns)


def test_the_document_has_no_other_tables() -> None:
    assert re.findall(r"^### `(\w+)`$", DOCUMENT.read_text("utf-8"), re.MULTILINE) == [
        *DOCUMENTED,
        "records",
    ]


@pytest.mark.parametrize("table", TABLES)
def test_rows_become_batches_with_the_same_values(table: str) -> None:
    row_type = TABLES[table]
    rows: list[tuple[object, ...]] = []
    for seed in range(12):
        history = MetadataHistory()
        made = [*history.add_all(random_log(seed)), *history.open_rows(), *history.end_state()]
        rows += [row for row in made if isinstance(row, row_type)]
    assert rows
    batch = record_batch(row_type, rows)
    batch.validate(full=True)
    assert batch.schema == arrow_schema(row_type)
    assert batch.num_rows == len(rows)
    for index, stored in enumerate(batch.schema.types):
        if not str(stored).startswith(("list", "timestamp")):
            assert batch.column(index).to_pylist() == [row[index] for row in rows]


def test_a_table_without_rows_is_an_empty_batch() -> None:
    assert record_batch(QuorumEpochRow, []).num_rows == 0


def test_times_are_timestamps_and_a_missing_one_is_null() -> None:
    def epoch(offset: int, number: int, time: int) -> LogRecord:
        return LogRecord(offset, number, time, LeaderChangeMessage(leader_id=1), 0)

    rows = list(MetadataHistory().add_all([epoch(0, 1, 1500), epoch(1, 2, -1)]))
    (row,) = record_batch(QuorumEpochRow, rows).to_pylist()
    assert row["from_time"] == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert row["to_time"] is None
    assert (row["from_offset"], row["to_offset"], row["leader"]) == (0, 1, 1)
