"""The source kvorum-metadata beside kafka-dump-log, and one topic with and without pushdown.

Rates are by seconds of CPU time of all processes that take part, so "per core". The start of
kafka-dump-log's Java, measured on a log of a few records, is a row of its own and not part of its
rate. The queries through Spark are timed by the clock, on one core.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.dump_log import DUMP_LOG_FLAGS
from benchmarks.fleet.cluster_log import write_cluster
from benchmarks.report import Row
from pyspark.sql import SparkSession
from tests.support.kafka.java import Java

from kvorum.log_files.find import METADATA_SEARCH, find_files
from kvorum.log_files.ranges import FileRange, plan_ranges
from kvorum.spark import KvorumMetadataSource
from kvorum.spark.conditions import Condition
from kvorum.spark.damage_modes import Mode
from kvorum.spark.metadata_source.columns import DEFAULT_COLUMNS, Column, columns_named
from kvorum.spark.metadata_source.filters import NO_FILTER, RowFilter
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import arrow_batches

RUNS = 5
FEW_RECORDS = 50
PARTITIONS = 1250
"""They belong to about a hundred topics at a time."""
TOPICS = 100
READER = Path(__file__).with_name("dump_reader.py")


class Log(NamedTuple):
    directory: Path
    units: list[FileRange]


def rows(
    folder: Path, java: Java, session: SparkSession, *, records: int, pushdown_records: int
) -> list[Row]:
    log, small = made_log(folder / "log", records), made_log(folder / "small", FEW_RECORDS)
    large = made_log(folder / "large", pushdown_records)
    return [*beside_dump_log(log, small, java), *with_pushdown(large, session, pushdown_records)]


def made_log(directory: Path, records: int) -> Log:
    write_cluster(directory, 1, records=records, partitions=PARTITIONS)
    return Log(directory, plan_ranges(find_files([str(directory)], METADATA_SEARCH)))


def read(
    log: Log, columns: tuple[Column, ...] = DEFAULT_COLUMNS, row_filter: RowFilter = NO_FILTER
) -> int:
    query = Query(columns, row_filter, Mode.FAILFAST, {})
    return sum(part.num_rows for unit in log.units for part in arrow_batches(unit, query))


def dump(log: Log, java: Java) -> int:
    """Pipe kafka-dump-log into Python, and return the number of records."""
    command = [
        str(java.executable),
        *DUMP_LOG_FLAGS,
        *("-cp", f"{java.jars}/*", "org.apache.kafka.tools.DumpLogSegments"),
        *("--cluster-metadata-decoder", "--files", ",".join(unit.file.path for unit in log.units)),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as dumping:
        done = subprocess.run(
            [sys.executable, str(READER)], stdin=dumping.stdout, capture_output=True, check=True
        )
    return int(done.stdout)


def cpu_seconds(call: Callable[[], int]) -> tuple[float, int]:
    """Return the CPU time that a call takes, with that of the processes it starts."""

    def used() -> float:
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))

    before = used()
    found = call()
    return used() - before, found


def beside_dump_log(log: Log, small: Log, java: Java) -> list[Row]:
    ours: list[float] = []
    theirs: list[float] = []
    starts: list[float] = []
    count = 0
    for _ in range(RUNS):
        seconds, count = cpu_seconds(lambda: read(log))
        ours.append(seconds)
        seconds, dumped = cpu_seconds(lambda: dump(log, java))
        if dumped < count - len(log.units):
            raise RuntimeError(f"kafka-dump-log shows {dumped} of {count} records")
        theirs.append(seconds)
        starts.append(cpu_seconds(lambda: dump(small, java))[0])
    start = statistics.median(starts)
    alone = statistics.median(theirs) - start
    return [
        Row(
            f"metadata log of {count:,} records, default columns, a core",
            "kafka-dump-log piped into Python, without its start",
            count / statistics.median(ours),
            count / alone,
            "r/s",
            is_rate=True,
        ),
        Row(
            f"metadata log of {FEW_RECORDS} records, CPU time",
            "kafka-dump-log piped into Python: its start",
            cpu_seconds(lambda: read(small))[0],
            start,
            "s",
        ),
    ]


def usual_topic(log: Log) -> str:
    """Return the id of a topic that has about one of a hundred records."""
    counts: Counter[str] = Counter()
    query = Query(columns_named(["topic_id"]), NO_FILTER, Mode.FAILFAST, {})
    for unit in log.units:
        for part in arrow_batches(unit, query):
            batch: Any = part
            ids: list[str | None] = batch.column(0).to_pylist()
            counts.update(topic for topic in ids if topic)
    wanted = counts.total() / TOPICS
    return min(counts, key=lambda topic: abs(counts[topic] - wanted))


class TopicQuery:
    """The history of one topic, through Spark: all its records."""

    def __init__(self, log: Log, session: SparkSession, topic: str) -> None:
        self._directory = str(log.directory)
        self._session = session
        self._topic = topic

    def seconds(self, *, is_pushing: bool, with_json: bool = False) -> tuple[float, int]:
        """Return how long the query takes by the clock, and how many records it finds."""
        table = self._session.read.format("kvorum-metadata").option("path", self._directory)
        table = table.option("pushFilters", str(is_pushing).lower())
        table = table.option("json", str(with_json).lower())
        started = time.perf_counter()
        found = table.load().where(f"topic_id = '{self._topic}'").collect()
        return time.perf_counter() - started, len(found)


def with_pushdown(log: Log, session: SparkSession, records: int) -> list[Row]:
    topic = usual_topic(log)
    pushed = RowFilter({"topic_id": Condition(frozenset({topic}))})
    session.dataSource.register(KvorumMetadataSource)
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    query = TopicQuery(log, session, topic)
    samples: list[tuple[float, float, float, float]] = []
    # The first round warms up.
    for turn in range(RUNS + 1):
        reader = (
            cpu_seconds(lambda: read(log, row_filter=pushed))[0],
            cpu_seconds(lambda: read(log))[0],
        )
        spark = (query.seconds(is_pushing=True), query.seconds(is_pushing=False))
        if spark[0][1] != spark[1][1]:
            raise RuntimeError("the pushed filter changes what the query finds")
        if turn:
            samples.append((*reader, spark[0][0], spark[1][0]))
    narrow, whole, narrow_query, whole_query = (
        statistics.median(values) for values in zip(*samples, strict=True)
    )
    what, peer = f"one topic of {TOPICS} in {records:,} records", "the same without pushFilters"
    return [
        Row(f"{what}, reader alone, CPU time", peer, narrow, whole, "s"),
        Row(f"{what}, through Spark", peer, narrow_query, whole_query, "s"),
        Row(f"{what}, through Spark, with json", peer, *with_json(query), "s"),
    ]


def with_json(query: TopicQuery) -> tuple[float, float]:
    """Return how long the query takes with the column `json`, with pushFilters and without.

    Without, every record is decoded: it takes minutes, so one run must do.
    """
    narrow = [query.seconds(is_pushing=True, with_json=True) for _ in range(RUNS)]
    whole, count = query.seconds(is_pushing=False, with_json=True)
    if {count} != {found for _, found in narrow}:
        raise RuntimeError("the pushed filter changes what the query with json finds")
    return statistics.median(seconds for seconds, _ in narrow), whole
