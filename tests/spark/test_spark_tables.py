"""Spark's reading of metadata logs that real Kafka wrote, against real Kafka's own."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from tests.spark.pipeline.runs import Notes
from tests.support.dump_log import DumpRecord, read_dump
from tests.support.golden_data import METADATA_NODES, dump_text, metadata_directories

from kvorum.log_files.find import METADATA_SEARCH, FileKind, LogFile, find_files
from kvorum.spark import KvorumMetadataSource
from kvorum.spark.pipeline.job import SparkTasks
from kvorum.spark.pipeline.request import PipelineReport, PipelineRequest
from kvorum.spark.pipeline.run import run_pipeline
from kvorum.wire.records import read_batches

# pyspark leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@dataclass(frozen=True, slots=True)
class Tables:
    """A golden directory, where its tables were written, and what the job reported."""

    source: Path
    target: Path
    report: PipelineReport


def reader(spark: SparkSession, **options: str) -> DataFrameReader:
    spark.dataSource.register(KvorumMetadataSource)
    return spark.read.format("kvorum-metadata").options(**options)


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return reader(spark, path=str(path), **options).load()


def run_with(spark: SparkSession, source: Path, target: Path) -> PipelineReport:
    request = PipelineRequest((str(source),), str(target), with_json=True)
    return run_pipeline(request, lambda: SparkTasks(spark), Notes())


def files_of(path: Path) -> tuple[LogFile, ...]:
    return find_files([str(path)], METADATA_SEARCH).files


def test_every_directory_with_a_log_is_among_the_tested(golden_sets: Path) -> None:
    with_log = {str(folder.parent.relative_to(golden_sets)) for folder in logs(golden_sets)}
    assert with_log == set(METADATA_NODES)


def logs(golden_sets: Path) -> list[Path]:
    return [
        folder
        for folder in metadata_directories(golden_sets)
        if any(dump_text(file).exists() for file in folder.glob("*.log"))
    ]


@pytest.fixture(scope="module", params=METADATA_NODES)
def tables(
    spark: SparkSession,
    golden_sets: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Tables]:
    """A golden directory, the tables written from it, and what the job reported."""
    source = golden_sets / str(request.param)
    target = tmp_path_factory.mktemp("tables")
    yield Tables(source, target, run_with(spark, source, target))
    shutil.rmtree(target)


def test_the_records_are_those_that_kafka_dump_log_lists(
    spark: SparkSession, tables: Tables
) -> None:
    found: dict[str, list[DumpRecord]] = defaultdict(list)
    columns = ["offset", "epoch", "unix_millis(timestamp)", "record_kind", "type", "version"]
    records = spark.read.parquet(str(tables.target / "records"))
    for row in records.selectExpr("path", *columns, "json").collect():
        found[row["path"]].append(DumpRecord(*row[1:]))
    dumped = {
        file.path: read_dump(dump_text(Path(file.path))) for file in read_files(tables.source)
    }
    assert set(found) == set(dumped)
    for file, expected in dumped.items():
        in_order = sorted(found[file], key=lambda record: record.offset)
        assert list(map(comparable, in_order, expected)) == expected, file
    assert tables.report.row_counts["records"] == sum(map(len, dumped.values()))


def read_files(source: Path) -> list[LogFile]:
    """Return the files whose records are in the tables: no snapshot that segments cover."""
    files = files_of(source)
    segments = [file for file in files if file.kind is FileKind.SEGMENT]
    snapshots = [file for file in files if file.kind is FileKind.SNAPSHOT]
    first = segments[0].offset or 0
    stand_ins = [file for file in snapshots if (file.offset or 0) >= first] if first else []
    return [*stand_ins[:1], *segments]


def comparable(record: DumpRecord, like: DumpRecord) -> DumpRecord:
    """Leave out what older releases leave out of their dump."""
    if like.json is not None:
        return record
    return DumpRecord(
        record.offset, record.epoch, record.timestamp_ms, record.record_kind, record.type,
        None, None,
    )  # fmt: skip


@pytest.mark.slow
def test_one_file_is_one_partition_of_the_work(spark: SparkSession, golden_sets: Path) -> None:
    table = load(spark, golden_sets / METADATA_NODES[1])
    files = files_of(golden_sets / METADATA_NODES[1])
    assert table.selectExpr("spark_partition_id()").distinct().count() == len(files)
    kinds = {(row["path"], row["file_kind"]) for row in table.select("path", "file_kind").collect()}
    assert kinds == {(file.path, file.kind.value) for file in files}


def test_key_fields_tell_what_a_record_is_about(spark: SparkSession, golden_sets: Path) -> None:
    table = load(spark, golden_sets / METADATA_NODES[1]).persist()
    topic = table.where("type = 'TOPIC_RECORD' AND topic_name = 'stock-levels'").first()
    assert topic is not None
    config = table.where("type = 'CONFIG_RECORD' AND resource_name = 'stock-levels'").first()
    assert config is not None
    assert config["resource_type"] == 2
    partitions = table.where(f"type = 'PARTITION_RECORD' AND topic_id = '{topic['topic_id']}'")
    assert {row["partition_id"] for row in partitions.collect()} == {0, 1, 2}
    brokers = table.where("type = 'REGISTER_BROKER_RECORD'").select("broker_id").distinct()
    assert {11, 12, 13} <= {row["broker_id"] for row in brokers.collect()}


@pytest.mark.parametrize("number", [0, 7])
def test_a_damaged_file_is_named_with_the_offset(
    spark: SparkSession, golden_sets: Path, tmp_path: Path, number: int
) -> None:
    segment = tmp_path / "00000000000000000000.log"
    shutil.copy(golden_sets / METADATA_NODES[4] / "__cluster_metadata-0" / segment.name, segment)
    damaged = bytearray(segment.read_bytes())
    batch = list(read_batches(segment.read_bytes()))[number]
    damaged[batch.position + 40] ^= 0xFF
    segment.write_bytes(damaged)
    expected = rf"{segment}: damaged at offset {batch.base_offset}: .* at byte {batch.position}: "
    with pytest.raises(PySparkException, match=expected):
        load(spark, tmp_path).count()


def shell_topics(text: str) -> list[str]:
    """Return what kafka-metadata-shell listed, without what its release logged beside it."""
    _, _, rest = text.partition("$ ls /image/topics/byName\n[exit 0]\n")
    listed, _, _ = rest.partition("\n$ ")
    return [line for line in listed.splitlines() if line and not line.startswith("[")]


@pytest.mark.parametrize("node", [METADATA_NODES[1], METADATA_NODES[3], METADATA_NODES[7]])
def test_the_topics_of_a_snapshot_are_those_that_the_real_node_reported(
    spark: SparkSession, golden_sets: Path, tmp_path: Path, node: str
) -> None:
    (shell,) = (golden_sets / node).glob("*/dumps/*.checkpoint.shell.txt")
    reported = shell_topics(shell.read_text())
    assert reported
    name = shell.name.removesuffix(".shell.txt")
    snapshot = shell.parent.parent / name
    run_with(spark, snapshot, tmp_path)
    topics = spark.read.parquet(str(tmp_path / "topics")).collect()
    assert sorted(row["topic_name"] for row in topics) == reported


OPTIONS = {"pushFilters": "true", "structs": "true", "json": "true"}


@pytest.mark.slow
def test_a_query_with_pushed_filters_finds_the_same(spark: SparkSession, golden_sets: Path) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    path = golden_sets / METADATA_NODES[1]
    plain, pushing = load(spark, path), load(spark, path, **OPTIONS)
    for where in (
        "type = 'PARTITION_RECORD' AND partition_id = 1",
        "topic_name IN ('stock-levels', 'none')",
        "offset BETWEEN 40 AND 60",
        "timestamp >= timestamp_millis(1) AND epoch > 3",
        "node_id = 7",
    ):
        columns = ["path", "offset", "type"]
        found = pushing.where(where).select(*columns).orderBy(*columns).collect()
        assert found == plain.where(where).select(*columns).orderBy(*columns).collect(), where
    structs = pushing.where("type = 'TOPIC_RECORD'").selectExpr("topic_name", "topic_record.name")
    assert all(row["topic_name"] == row["name"] for row in structs.collect())


def test_a_schema_of_the_user_prunes_the_columns(spark: SparkSession, golden_sets: Path) -> None:
    path = golden_sets / METADATA_NODES[1]
    whole = sorted(load(spark, path).select("type", "offset").collect())
    read = reader(spark, path=str(path)).schema("type string, offset bigint")
    assert sorted(read.load().collect()) == whole
    assert sorted(read.option("columns", "type,offset").load().collect()) == whole


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "option 'path' is missing"),
        ({"path": "p", "depth": "2"}, "no option 'depth'"),
        ({"path": "p", "columns": "offset,tpye"}, "no column 'tpye'"),
        ({"path": "p", "mode": "strict"}, "option 'mode' is 'strict'"),
        ({"path": "nothing://x"}, "no file system for nothing://"),
    ],
)
def test_wrong_options_are_one_clear_line(
    spark: SparkSession, options: dict[str, str], error: str
) -> None:
    with pytest.raises(PySparkException, match=error):
        reader(spark, **options).load().count()


def test_damage_is_a_row_in_the_mode_permissive(
    spark: SparkSession, golden_sets: Path, tmp_path: Path
) -> None:
    segment = tmp_path / "00000000000000000000.log"
    sound = golden_sets / METADATA_NODES[4] / "__cluster_metadata-0" / segment.name
    data = bytearray(sound.read_bytes())
    batch = list(read_batches(bytes(data)))[3]
    data[batch.position + 70] ^= 1
    segment.write_bytes(data)
    (row,) = load(spark, tmp_path, mode="permissive").where("damage IS NOT NULL").collect()
    assert (row["path"], row["offset"], row["type"]) == (str(segment), batch.base_offset, None)
    assert f"at byte {batch.position}: the checksum" in row["damage"]
    kept = load(spark, tmp_path, mode="dropmalformed")
    assert kept.count() == load(spark, sound).count() - batch.record_count
