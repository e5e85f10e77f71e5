"""The time of `kvorum pipeline` for a small log, beside a session of Spark that counts one row.

Both are processes of their own at default settings, by the clock, in turns. Ours reads a log of a
few hundred records and writes all tables.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.fleet.cluster_log import write_cluster
from benchmarks.report import Row

RUNS: Final = 7
RECORDS: Final = 300
BARE_SESSION: Final = """
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
assert session.range(1).count() == 1
session.stop()
"""


def rows(folder: Path, *, runs: int = RUNS) -> list[Row]:
    """Return the row of the report; log and tables are written below `folder`."""
    log = folder / "cluster"
    write_cluster(log, 1, records=RECORDS, partitions=30)
    pipeline = [sys.executable, "-m", "kvorum.cli", "pipeline", "--input", str(log)]
    samples: list[tuple[float, float]] = []
    for number in range(runs):
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
