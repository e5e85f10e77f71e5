"""The snippets of the pages on Spark, run as they stand but for paths and addresses."""

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.object_store import SOCKETS_LEFT_OPEN, Options, fsspec, upload
from tests.spark.pipeline.runs import rows_of
from tests.support.page_blocks import at_places, page_block
from tests.support.pasted_shell import run_pasted
from tests.support.spark.small_logs import directory_records
from tests.support.spark.streaming_reads import start_patiently
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.history.tables import TopicRow
from kvorum.testing import Cluster

pytestmark = SOCKETS_LEFT_OPEN

CONTROLLER_1 = "dynamic-4.3.1/metadata/controller-1"
STORE = "https://store.example"
CONTROLLERS = "controller-1:9093,controller-2:9093"
LOADED = "    .load()\n"
SPARK_PATIENCE_S = 5 * PATIENCE_S
"""The patience for commands of which each starts a session of its own."""


def run_snippet(snippet: str, folder: Path, **names: object) -> dict[str, Any]:
    """Run a snippet that uses the given names, and return all names that it leaves."""
    program = folder / "snippet.py"
    program.write_text(snippet, encoding="utf-8")
    return runpy.run_path(str(program), init_globals=names)


@pytest.fixture(scope="module")
def backups(golden_sets: Path, object_store: Options) -> Options:
    """The store's options; it has the metadata log of a controller as s3://backups/kafka/."""
    fsspec.filesystem("s3", **object_store).mkdir("backups")
    upload(golden_sets / CONTROLLER_1, "s3://backups/kafka/metadata", object_store)
    return object_store


@pytest.mark.slow
def test_changes_without_a_leader_are_read_from_an_object_store(
    spark: SparkSession, backups: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snippet = page_block("docs/spark/README.md", "python", "leader = -1")
    # A user's environment has the password of a store; that of the running session has none.
    password = "".join(
        f'    .option("fs.{name}", "{backups[name]}")\n' for name in ("key", "secret")
    )
    address = backups["client_kwargs"]["endpoint_url"]
    places = {STORE: address, LOADED: f"{password}{LOADED}"}
    run_snippet(at_places(snippet, places), tmp_path, spark=spark)
    assert "|PARTITION_CHANGE_...|" in capsys.readouterr().out


@pytest.mark.slow
def test_a_quorum_is_streamed_into_a_table(spark: SparkSession, tmp_path: Path) -> None:
    snippet = page_block("docs/spark/README.md", "python", "spark.readStream")

    with Cluster(controllers=3) as cluster:
        places = {CONTROLLERS: cluster.controller_servers, "/tables/": f"{tmp_path}/tables/"}
        program = at_places(snippet, places)
        query = start_patiently(
            lambda: run_snippet(program, tmp_path, spark=spark)["query"], has_progress
        )
        query.stop()
        assert query.exception() is None
    types = {row["type"] for row in spark.read.parquet(f"{tmp_path}/tables/records").collect()}
    assert types >= {"REGISTER_BROKER_RECORD", "FEATURE_LEVEL_RECORD"}


def has_progress(query: StreamingQuery) -> bool:
    """Wait for the first rows: a quorum has news again and again, and no last ones."""
    wait_for(
        lambda: bool(query.recentProgress) or not query.isActive,
        "the query has read something, or has ended",
    )
    return query.isActive


@pytest.mark.slow
def test_what_a_committed_reader_sees_of_two_topics(
    spark: SparkSession, golden_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = golden_sets / "dynamic-4.3.1" / "data"
    for source, name in (("emails-tx-0", "orders-0"), ("sessions-none-0", "payments-0")):
        shutil.copytree(data / source, tmp_path / "kafka" / name)
    snippet = page_block("docs/spark/README.md", "python", "kvorum-log")
    placed = at_places(snippet, {"/var/kafka": f"{tmp_path}/kafka"})
    names = run_snippet(placed, tmp_path, spark=spark)
    assert {row["topic"] for row in names["records"].collect()} == {"orders", "payments"}
    printed = capsys.readouterr().out
    assert "only showing top 20 rows" in printed
    assert [word.strip() for word in printed.splitlines()[1].split("|")] == ["", "key", "value", ""]


def test_a_history_is_folded_without_spark(golden_sets: Path, tmp_path: Path) -> None:
    log = golden_sets / CONTROLLER_1 / "__cluster_metadata-0"
    snippet = page_block("docs/spark/tables.md", "python", "MetadataHistory")
    names = run_snippet(at_places(snippet, {"/var/kafka/__cluster_metadata-0": str(log)}), tmp_path)
    history = names["MetadataHistory"]()
    assert names["rows"] == list(history.add_all(directory_records(log)))
    assert names["still_open"] == list(history.open_rows())
    assert {"audit_log", "stock-levels"} <= {
        row.topic_name for row in names["state"] if isinstance(row, TopicRow)
    }
    assert names["saved"] == history.to_bytes()


@pytest.mark.slow
def test_the_pipeline_of_the_page_on_directories_and_on_a_store(
    golden_sets: Path, backups: Options, tmp_path: Path
) -> None:
    system = fsspec.filesystem("s3", **backups)
    system.mkdir("warehouse")
    shutil.copytree(golden_sets / CONTROLLER_1, tmp_path / "backups" / "kafka")
    snippet = page_block("docs/spark/README.md", "sh", "s3://backups/*/metadata")
    places = {" /backups/": f" {tmp_path}/backups/", " /warehouse/": f" {tmp_path}/warehouse/"}
    store = {
        "AWS_ACCESS_KEY_ID": backups["key"],
        "AWS_SECRET_ACCESS_KEY": backups["secret"],
        "AWS_ENDPOINT_URL": backups["client_kwargs"]["endpoint_url"],
        "AWS_DEFAULT_REGION": backups["client_kwargs"]["region_name"],
    }
    run_pasted(at_places(snippet, places), tmp_path, store, patience_s=SPARK_PATIENCE_S)
    system.get("s3://warehouse/kafka/", f"{tmp_path}/stored", recursive=True)
    written = rows_of(tmp_path / "warehouse" / "kafka", "topics")
    assert len(written) > 1
    assert comparable(rows_of(tmp_path / "stored", "topics")) == comparable(written)


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in rows)
