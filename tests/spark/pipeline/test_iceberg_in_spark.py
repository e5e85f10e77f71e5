"""Tables in Iceberg's format, read by Iceberg's own runtime for Spark through a Hadoop catalog."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.spark.pipeline.runs import comparable, content, run_here
from tests.spark.pipeline.story_logs import Story
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import ICEBERG_RUNTIME

from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.pipeline.tables import ALL_TABLES, RUNS

pytest.importorskip("pyiceberg")

PROGRAM: Final = """\
import json, sys
from pyspark.sql import SparkSession
jars, warehouse, space, tables = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(",")
settings = {
    "spark.jars": jars,
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalog.fleet": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.fleet.type": "hadoop",
    "spark.sql.catalog.fleet.warehouse": warehouse,
}
builder = SparkSession.Builder().master("local[2]")
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
found = {}
for table in tables:
    rows = spark.table(f"fleet.{space}.{table}").toArrow().to_pylist()
    found[table] = [json.dumps(row, default=str, sort_keys=True) for row in rows]
files = spark.sql(f"SELECT sum(record_count) FROM fleet.{space}.records.files").first()[0]
print(json.dumps({"rows": found, "records_in_files": files}))
spark.stop()
"""


@pytest.mark.slow
def test_iceberg_in_spark_reads_the_rows_of_parquet_tables(
    story: Story, spark_java: Path, tmp_path: Path, kafka_jars: JarsOf
) -> None:
    jars = kafka_jars(ICEBERG_RUNTIME)
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    output = tmp_path / "warehouse" / "kafka"
    run_here(source, output, table_format=TableFormat.ICEBERG)
    run_here(story.write(source), output, table_format=TableFormat.ICEBERG)
    run_here(source, tmp_path / "expected")
    expected = content(tmp_path / "expected")
    tables = [table for table in ALL_TABLES if table != RUNS and (output / table).exists()]
    done = subprocess.run(
        [
            sys.executable, "-c", PROGRAM, ",".join(map(str, jars.glob("*.jar"))),
            str(output.parent), output.name, ",".join(tables),
        ],
        capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(spark_java.resolve().parent.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert {
        table: comparable(table, map(json.loads, rows)) for table, rows in found["rows"].items()
    } == {table: expected[table] for table in tables}
    assert found["records_in_files"] == len(expected["records"])
