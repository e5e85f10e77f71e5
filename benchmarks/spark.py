"""Our work with Spark beside what there is: a bare session, kafka-dump-log, the Kafka connector.

The start is the time of `kvorum pipeline` for a small log, beside a session of Spark that counts
one row. Both are processes of their own at default settings, by the clock, in turns. Ours reads a
log of a few hundred records and writes all tables.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import spark_log, spark_metadata
from benchmarks.fleet.cluster_log import write_cluster
from benchmarks.report import Row
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, SPARK_CONNECTOR, find_java
from tests.support.kafka.java import Java

from kvorum.spark.session import build_session

RUNS: Final = 7
RECORDS: Final = 300
BARE_SESSION: Final = """
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
assert session.range(1).count() == 1
session.stop()
"""


def rows(*, metadata_records: int, pushdown_records: int, log_records: int) -> list[Row]:
    """Return the rows of the report: a start, metadata logs and a topic of so many records."""
    with tempfile.TemporaryDirectory() as folder:
        # Before the environment is that of the session with the connector.
        start = start_rows(Path(folder))
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


def start_rows(folder: Path) -> list[Row]:
    """Return the row of the report; log and tables are written below `folder`."""
    log = folder / "cluster"
    write_cluster(log, 1, records=RECORDS, partitions=30)
    pipeline = [sys.executable, "-m", "kvorum.cli", "pipeline", "--input", str(log)]
    samples: list[tuple[float, float]] = []
    for number in range(RUNS):
        ours = _seconds([*pipeline, "--output", str(folder / f"tables-{number}")])
        theirs = _seconds([sys.executable, "-c", BARE_SESSION])
        print(f"kvorum pipeline {ours:.2f} s, a bare session {theirs:.2f} s", file=sys.stderr)
        samples.append((ours, theirs))
    ours, theirs = (statistics.median(values) for values in zip(*samples, strict=True))
    what = f"kvorum pipeline, log of {RECORDS} records"
    return [Row(what, "a session of Spark that counts one row", ours, theirs, "s")]


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - started
