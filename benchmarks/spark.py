"""Our work with Spark beside what there is: a bare session, kafka-dump-log, the Kafka connector."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks import spark_log, spark_metadata, spark_start
from benchmarks.report import Row
from tests.support.kafka.fetch_jars import (
    JARS_ROOT,
    REFERENCE_RELEASE,
    SPARK_CONNECTOR,
    find_java,
)
from tests.support.kafka.java import Java

from kvorum.spark.session import build_session


def rows(*, metadata_records: int, pushdown_records: int, log_records: int) -> list[Row]:
    """Return the rows of the report: a start, metadata logs and a topic of so many records."""
    with tempfile.TemporaryDirectory() as folder:
        # Before the environment is that of the session with the connector.
        start = spark_start.rows(Path(folder))
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    jars = ",".join(str(jar) for jar in sorted((JARS_ROOT / SPARK_CONNECTOR).glob("*.jar")))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    session = build_session(master="local[1]", driver_memory="2g")
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            return [
                *start,
                *spark_metadata.rows(
                    root / "metadata",
                    java,
                    session,
                    records=metadata_records,
                    pushdown_records=pushdown_records,
                ),
                *spark_log.rows(root / "broker", java, session, log_records),
            ]
    finally:
        session.stop()
