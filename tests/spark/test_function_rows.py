"""Results of the functions for single records, without Spark."""

import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from tests.spark.spark_filters import present
from tests.support.dump_log import read_dump
from tests.support.golden_data import TOPICS, GoldenRecord, dump_text, golden_records
from tests.support.source_tree import ROOT

from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kvorum.metadata.record_frame import encode_record
from kvorum.spark import functions
from kvorum.spark.arrow_types import (
    INT,
    INTS,
    LONG,
    TEXT,
    TEXTS,
    TIMESTAMP,
    spark_schema,
    spark_type,
)
from kvorum.spark.functions import (
    FUNCTIONS,
    ArrowArray,
    cluster_metadata,
    consumer_offsets,
    evaluate,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kvorum.spark.functions.cluster_metadata import METADATA_RECORD
from kvorum.spark.functions.consumer_offsets import CONSUMER_OFFSETS_RECORD
from kvorum.spark.functions.record_function import (
    Column,
    Field,
    FunctionArgumentError,
    RecordFunction,
    Row,
    UndecodableRecordError,
)
from kvorum.spark.functions.remote_log_metadata import REMOTE_LOG_METADATA_RECORD
from kvorum.spark.functions.share_group_state import SHARE_GROUP_STATE_RECORD
from kvorum.spark.functions.transaction_state import TRANSACTION_STATE_RECORD
from kvorum.spark.metadata_source.columns import DEFAULT_COLUMNS, JSON_COLUMN, types_of
from kvorum.wire.apis import message_class
from kvorum.wire.json_form import FieldFacts, element_class, fields_of
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Struct
from kvorum.wire.records import read_batches

ROWS: dict[str, Callable[[bytes | None, bytes | None], Row | None]] = {
    "__consumer_offsets": CONSUMER_OFFSETS_RECORD.row,
    "__share_group_state": SHARE_GROUP_STATE_RECORD.row,
    "__transaction_state": TRANSACTION_STATE_RECORD.row,
}
METADATA_LOG = "dynamic-4.3.1/metadata/controller-1/__cluster_metadata-0"
TOPIC_ID = bytes(range(16))
COMMIT_KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
COMMIT_VALUE = bytes.fromhex("0000 0000000000000005 0001 6d 0000000000000007")


def result(function: RecordFunction, *values: bytes | None) -> Row | None:
    (found,) = results(function, *([value] for value in values))
    return None if found is None else present(found)


def results(function: RecordFunction, *columns: Sequence[bytes | None]) -> list[Any]:
    return evaluate(function, [pa.array(column, pa.binary()) for column in columns]).to_pylist()


# -- records that Kafka wrote --------------------------------------------------------------------


@pytest.mark.parametrize("topic", TOPICS)
def test_every_golden_record_is_what_kafka_dump_log_printed(golden_sets: Path, topic: str) -> None:
    records = list(golden_records(golden_sets, topic))
    assert len(records) >= 10
    for record in records:
        row = ROWS[topic](record.key, record.value)
        assert row is not None
        assert "error" not in row
        assert record.key_text == f'{{"type":"{row["type_id"]}","data":{row["key_json"]}}}'
        if record.value_text is None:
            assert row["is_tombstone"]
            assert "value_json" not in row
        else:
            shown = f'{{"version":"{row["value_version"]}","data":{row["value_json"]}}}'
            assert record.value_text == shown


def commits(golden_sets: Path) -> Iterator[tuple[GoldenRecord, Row]]:
    for record in golden_records(golden_sets, "__consumer_offsets"):
        row = CONSUMER_OFFSETS_RECORD.row(record.key, record.value)
        assert row is not None
        if row["type"] == "OFFSET_COMMIT":
            yield record, row


def test_columns_of_golden_commits_are_those_fields(golden_sets: Path) -> None:
    found = list(commits(golden_sets))
    assert len(found) > 50
    for record, row in found:
        key, value = record.dumped_key()["data"], (record.dumped_value() or {"data": {}})["data"]
        expected = {
            "group_id": key["group"], "topic_name": key["topic"], "partition_id": key["partition"],
            "offset": value.get("offset"), "leader_epoch": value.get("leaderEpoch"),
            "metadata": value.get("metadata"), "topic_id": value.get("topicId"),
        }  # fmt: skip
        assert {name: row.get(name) for name in expected} == expected
        if value:
            assert row["commit_timestamp"] == value["commitTimestamp"] * 1000


def test_every_golden_metadata_record_is_what_kafka_dump_log_printed(golden_sets: Path) -> None:
    for segment in sorted((golden_sets / METADATA_LOG).glob("*.log")):
        dumped = [
            (record.type, record.version, record.json)
            for record in read_dump(dump_text(segment))
            if record.record_kind == "metadata"
        ]
        values = [
            record.value
            for batch in read_batches(segment.read_bytes())
            if not batch.is_control
            for record in batch.records()
        ]
        rows = results(METADATA_RECORD, values)
        assert [(row["type"], row["version"], row["json"]) for row in rows] == dumped
        assert not any(row["error"] for row in rows)


# -- columns -------------------------------------------------------------------------------------


def test_a_metadata_record_has_the_columns_of_its_subject() -> None:
    value = encode_record(TopicRecord(name="größe", topic_id=TOPIC_ID), 0)
    assert result(METADATA_RECORD, value) == {
        "type": "TOPIC_RECORD", "version": 0, "topic_name": "größe",
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "json": '{"name":"größe","topicId":"AAECAwQFBgcICQoLDA0ODw"}',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("timestamp_ms", "timestamp_us"),
    [(-1, None), (0, 0), (253_402_300_799_999, 253_402_300_799_999_000), (2**62, None)],
)
def test_times_that_spark_does_not_have_are_null(
    timestamp_ms: int, timestamp_us: int | None
) -> None:
    times = timestamp_ms.to_bytes(8, "big", signed=True) * 2
    value = bytes.fromhex("0001 0000000000000005 0000") + times
    row = CONSUMER_OFFSETS_RECORD.row(COMMIT_KEY, value)
    assert row is not None
    assert (row["commit_timestamp"], row["expire_timestamp"]) == (timestamp_us, timestamp_us)
    assert json.loads(row["value_json"])["commitTimestamp"] == timestamp_ms
    # This version has no leader epoch.
    assert "leader_epoch" not in row


KINDS = {
    "string": TEXT,
    "uuid": TEXT,
    "int8": INT,
    "int16": INT,
    "int32": INT,
    "int64": LONG,
    "[]string": TEXTS,
    "[]int32": INTS,
}


def schema_field(
    kind: type[Struct], path: tuple[str, ...]
) -> tuple[FieldFacts, type[Struct] | None]:
    """Return the field of a message at a path, and the class of its elements."""
    (fact,) = [fact for fact in fields_of(kind) if fact.json_name == path[0]]
    inner = element_class(kind, fact.kind)
    if len(path) == 1:
        return fact, inner
    assert inner is not None
    return schema_field(inner, path[1:])


def every_field() -> Iterator[tuple[tuple[Column, ...], Field, str]]:
    """Yield each field of each record type, with the name of the message that it is read from."""
    topics = (
        (CONSUMER_OFFSETS, consumer_offsets),
        (TRANSACTION_STATE, transaction_state),
        (SHARE_GROUP_STATE, share_group_state),
    )
    for topic, module in topics:
        for message in topic.messages.values():
            name = "".join(f"_{letter}" if letter.isupper() else letter for letter in message)
            for each in module.FIELDS[name.upper().lstrip("_")]:
                yield module.COLUMNS, each, message + each.path[0].capitalize()
    for type_name, fields in remote_log_metadata.FIELDS.items():
        for each in fields:
            yield remote_log_metadata.COLUMNS, each, type_name.title().replace("_", "")


def test_every_field_is_one_of_its_schema_with_the_type_of_its_column() -> None:
    for columns, each, message in every_field():
        (column,) = [column for column in columns if column.name == each.column]
        fact, elements = schema_field(message_class(message), each.path[1:])
        if elements is None and each.convert is None:
            assert KINDS[fact.kind] == column.type, (message, each)
            continue
        if elements is None:
            assert column.type == (TIMESTAMP if fact.kind == "int64" else TEXT), (message, each)
            continue
        structs: Any = column.type
        names = {fact.json_name: fact.kind for fact in fields_of(elements)}
        assert each.convert is not None
        (struct,) = each.convert([names])
        assert set(struct) == {element.name for element in structs.value_type}


# -- what cannot be decoded ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "problem", "columns"),
    [
        (None, b"\x00\x00", "the record has no key", {}),
        (b"\x00", None, "key: 1 bytes are too few", {}),
        (b"\x00\x18", None, "unknown record type 24", {"type_id": 24}),
        (COMMIT_KEY[:-1], COMMIT_VALUE, "OffsetCommitKey at byte", {"type_id": 1}),
        (COMMIT_KEY, b"\x00\x09", "OffsetCommitValue has no version 9", {"group_id": "g"}),
        (COMMIT_KEY, COMMIT_VALUE[:-1], "OffsetCommitValue at byte", {"topic_name": "t"}),
        (COMMIT_KEY, b"", "value: 0 bytes are too few", {"partition_id": 3}),
    ],
)
def test_a_record_that_cannot_be_decoded_has_the_reason_and_what_comes_before_it(
    key: bytes | None, value: bytes | None, problem: str, columns: dict[str, object]
) -> None:
    row = result(CONSUMER_OFFSETS_RECORD, key, value)
    assert row is not None
    assert row["error"].startswith(problem)
    assert {name: row.get(name) for name in columns} == columns
    assert "offset" not in row
    assert row["is_tombstone"] == (value is None)


@pytest.mark.parametrize(
    ("function", "value", "problem"),
    [
        (METADATA_RECORD, b"", "record ends inside its frame version"),
        (METADATA_RECORD, b"\x01\x7f\x00", "unknown metadata record type 127"),
        (METADATA_RECORD, b"\x01\x02\x09", "TopicRecord has no version 9"),
        (REMOTE_LOG_METADATA_RECORD, b"\x01\x04\x00", "unknown record type 4"),
        (REMOTE_LOG_METADATA_RECORD, b"\x02\x00\x00", "unknown frame version 2"),
        (REMOTE_LOG_METADATA_RECORD, b"\x01\x00\x00\x01", "record of type 0"),
    ],
)
def test_a_value_that_cannot_be_decoded_has_the_reason(
    function: RecordFunction, value: bytes, problem: str
) -> None:
    row = result(function, value)
    assert row is not None
    assert set(row) == {"error"}
    assert row["error"].startswith(problem)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_null_gives_null(function: RecordFunction) -> None:
    assert result(function, *(None for _ in function.arguments)) is None


def test_a_mode_counts_for_its_row() -> None:
    good = encode_record(TopicRecord(name="t", topic_id=TOPIC_ID), 0)
    values = pa.array([good, b"\x02", None], pa.binary())

    def rows(*modes: str | None) -> list[Any]:
        return evaluate(METADATA_RECORD, [values, pa.array(modes, pa.string())]).to_pylist()

    assert rows("failfast", "permissive", "FAILFAST")[1]["error"]
    with pytest.raises(UndecodableRecordError, match=r"kvorum_metadata_record: unknown frame"):
        rows("permissive", "FailFast", "permissive")
    for mode in ("dropmalformed", "", None):
        with pytest.raises(FunctionArgumentError, match="must be PERMISSIVE or FAILFAST"):
            rows("permissive", "permissive", mode)


def test_arguments_that_a_function_cannot_take_are_refused_by_name() -> None:
    texts, data = pa.array(["t"], pa.string()), pa.array([b"t"], pa.binary())
    with pytest.raises(FunctionArgumentError, match="value must be BINARY, not string"):
        evaluate(CONSUMER_OFFSETS_RECORD, [data, texts])
    wrong: tuple[list[ArrowArray], ...] = ([], [data], [data, data, texts, texts])
    for arrays in wrong:
        with pytest.raises(FunctionArgumentError, match=r"\(key, value\[, mode\]\)"):
            evaluate(CONSUMER_OFFSETS_RECORD, arrays)


def after_a_number(number: int, rest: bytes) -> bytes:
    return struct.pack(">h", number) + rest


def after_a_frame(number: int, rest: bytes) -> bytes:
    return bytes([1, number, 0]) + rest


BYTES = st.binary(max_size=80)
PARTS = st.one_of(
    st.none(),
    BYTES,
    st.builds(after_a_number, st.integers(0, 24), BYTES),
    st.builds(after_a_frame, st.integers(0, 30), BYTES),
)


@given(st.sampled_from(FUNCTIONS), st.tuples(PARTS, PARTS))
def test_random_bytes_never_raise(
    function: RecordFunction, parts: tuple[bytes | None, bytes | None]
) -> None:
    result(function, *parts[: len(function.arguments)])


def damaged(data: bytes, random: Random) -> bytes:
    """Return the bytes with some of their bits flipped, and now and then cut or prolonged."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    if random.random() < 0.2:
        del changed[random.randrange(len(changed)) :]
    if random.random() < 0.1:
        changed += random.randbytes(random.randrange(9))
    return bytes(changed)


@pytest.mark.parametrize("topic", TOPICS)
def test_flipped_bits_in_golden_records_never_raise(golden_sets: Path, topic: str) -> None:
    random = Random(431)
    records = list(golden_records(golden_sets, topic))
    (function,) = [each for each in FUNCTIONS if each.name == f"kvorum_{topic[2:]}_record"]
    keys: list[bytes] = []
    values: list[bytes | None] = []
    for _ in range(2_000):
        record = random.choice(records)
        is_key = random.random() < 0.3 or record.value is None
        keys.append(damaged(record.key, random) if is_key else record.key)
        values.append(record.value if is_key else damaged(record.value or b"", random))
    errors = [row["error"] for row in results(function, keys, values)]
    assert 200 < sum(error is not None for error in errors) < 1_900


def test_flipped_bits_in_golden_metadata_never_raise(golden_sets: Path) -> None:
    random = Random(431)
    values = [
        damaged(record.value or b"", random)
        for batch in read_batches(min((golden_sets / METADATA_LOG).glob("*.log")).read_bytes())
        if not batch.is_control
        for record in batch.records()
    ]
    rows = results(METADATA_RECORD, values)
    assert len(rows) == len(values)
    for row in rows:
        assert row["error"] or json.loads(row["json"]) is not None
    assert any(row["error"] for row in rows)


def test_columns_of_metadata_are_of_the_same_type_as_those_of_the_data_source() -> None:
    columns = [column for column in cluster_metadata.COLUMNS if column.name != "error"]
    ours = spark_schema({column.name: column.type for column in columns}).split(", ")
    assert set(ours) <= set(spark_schema(types_of((*DEFAULT_COLUMNS, JSON_COLUMN))).split(", "))


ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|", re.MULTILINE)
NESTED = re.compile(r"(?<=\w):(?=\w)|,(?=\w)")


def spaced(type_text: str) -> str:
    """Write Spark's short text of a type, struct<a:int,b:int>, as SQL does."""
    return NESTED.sub(lambda found: " " if found[0] == ":" else ", ", type_text)


def test_the_page_lists_every_column_with_its_type() -> None:
    page = (ROOT / "docs" / "spark" / "functions.md").read_text(encoding="utf-8")
    sections = {
        section.partition("\n")[0]: [(name, kind) for name, kind in ROW.findall(section)]
        for section in page.partition("\n## Columns\n")[2].split("\n### ")[1:]
    }
    assert sections == {
        function.name: [
            (column.name, spaced(spark_type(column.type))) for column in function.columns
        ]
        for function in FUNCTIONS
    }


BATCH_ROWS_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
BY_TOPIC: dict[str, tuple[RecordFunction, Callable[..., SparkColumn]]] = {
    "__consumer_offsets": (CONSUMER_OFFSETS_RECORD, functions.consumer_offsets_record),
    "__share_group_state": (SHARE_GROUP_STATE_RECORD, functions.share_group_state_record),
    "__transaction_state": (TRANSACTION_STATE_RECORD, functions.transaction_state_record),
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the functions, and batches that are smaller than the tables."""
    functions.register(spark)
    spark.conf.set(BATCH_ROWS_SETTING, "50")
    yield spark
    spark.conf.unset(BATCH_ROWS_SETTING)


def table(
    session: SparkSession, schema: str, rows: Sequence[tuple[bytes | None, ...]]
) -> DataFrame:
    return session.createDataFrame(list(rows), schema).coalesce(1)


def shown(columns: Sequence[Column]) -> list[str]:
    """Return the expressions of what is in the column `record`, times in microseconds."""
    return [
        f"unix_micros(record.{column.name}) AS {column.name}"
        if column.type == TIMESTAMP
        else f"record.{column.name}"
        for column in columns
    ]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("topic", TOPICS)
def test_sql_and_columns_give_the_rows_of_golden_records(
    session: SparkSession, golden_sets: Path, topic: str
) -> None:
    function, call = BY_TOPIC[topic]
    records = [(record.key, record.value) for record in golden_records(golden_sets, topic)]
    stored = table(session, "key binary, value binary", records)
    in_sql = stored.selectExpr(f"{function.name}(key, value) AS record", "key", "value")
    on_columns = in_sql.select("record", call("key", in_sql.value).alias("again"))
    is_same = "record <=> again AS is_same"
    found = on_columns.selectExpr(*shown(function.columns), is_same).collect()
    assert [present(row.asDict(recursive=True)) for row in found] == [
        {**present(function.row(key, value)), "is_same": True} for key, value in records
    ]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_functions_of_a_value_give_null_and_errors_as_rows(session: SparkSession) -> None:
    stored = table(session, "value binary", [(b"\x02",), (None,)])
    found = stored.select(
        functions.metadata_record("value").alias("metadata"),
        functions.remote_log_metadata_record("value").alias("remote"),
        expr("kvorum_metadata_record(value, 'permissive')").alias("metadata_in_sql"),
        expr("kvorum_remote_log_metadata_record(value, 'PERMISSIVE')").alias("remote_in_sql"),
    ).collect()
    problem = "unknown frame version 2 (only frame version 1 is known)"
    assert [found[0][name]["error"] for name in found[0].asDict()] == [problem] * 4
    assert list(found[1]) == [None] * 4


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_failfast_fails_the_query_with_the_reason(session: SparkSession) -> None:
    stored = table(session, "value binary", [(b"\x02",)])
    for failing in (
        functions.metadata_record("value", mode="failfast"),
        expr("kvorum_metadata_record(value, 'FAILFAST')"),
    ):
        with pytest.raises(
            PySparkException, match="kvorum_metadata_record: unknown frame version 2"
        ):
            stored.select(failing).collect()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_text_instead_of_bytes_is_refused_by_name(session: SparkSession) -> None:
    stored = table(session, "value binary", [(b"text",)])
    with pytest.raises(PySparkException, match="value must be BINARY, not string"):
        stored.selectExpr("kvorum_metadata_record(CAST(value AS STRING))").collect()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_an_unknown_mode_is_refused_before_the_query_runs() -> None:
    with pytest.raises(FunctionArgumentError, match="unknown mode 'dropmalformed'"):
        functions.metadata_record("value", mode="dropmalformed")
