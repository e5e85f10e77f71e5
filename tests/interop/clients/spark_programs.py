"""Programs that run Spark's Kafka connector in a process of their own.

    python -m tests.interop.clients.spark_programs PROGRAM SERVERS JARS ...

Spark starts a Java process with the jars in the folder.
"""

import json
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.support.node_process import run_python
from tests.support.page_blocks import page_block

from kvorum.spark.functions import transaction_state_record
from kvorum.spark.session import build_session

BROKER = "localhost:9092"
SHOWN = ".show()\n"
STREAMS = "the query runs"
"""The line of a program whose streaming query has begun."""
FAILED_METRICS = 'IterableOps.map(scala.Function1)" because the return value'
"""The text by which Spark 4.1.1 fails once it has repeated the batch that a killed query left
(SPARK-55271): the batch is done, and the query can begin again."""
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")


def spark_program(program: Callable[..., None], *arguments: str | Path) -> list[str]:
    """Return the command line that runs a program of this module."""
    return [sys.executable, "-m", __name__, program.__name__, *map(str, arguments)]


def run_spark_program(program: Callable[..., None], *arguments: str | Path) -> str:
    """Run a program of this module to its end, in a process; return what it prints."""
    done = run_python("-m", __name__, program.__name__, *map(str, arguments))
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def session_with_jars(folder: str) -> SparkSession:
    """Start the session of a program, and the Java process after it."""
    jars = ",".join(str(jar) for jar in sorted(Path(folder).glob("*.jar")))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    return build_session(master="local[1]")


TOPIC = {"assign": '{"__cluster_metadata":[0]}', "startingOffsets": "earliest"}
COLUMNS = ("offset", "CAST(UNIX_MILLIS(timestamp) AS LONG) AS timestamp", "HEX(value) AS value")


def _rows(frame: Any) -> list[list[Any]]:
    """Return offset, timestamp and value of each record, in order."""
    return [list(row) for row in frame.selectExpr(*COLUMNS).orderBy("offset").collect()]


def _streamed(session: SparkSession, options: dict[str, str], folder: str) -> list[list[Any]]:
    """Return what a streaming query reads until it has caught up."""
    stream = session.readStream.format("kafka").options(**options).load()
    query = (
        stream.writeStream.format("memory")
        .queryName("records")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return _rows(session.table("records"))


def read_metadata(servers: str, jars: str, checkpoints: str) -> None:
    """Read ``__cluster_metadata``.

    Prints one JSON object: the records of a batch query from the earliest offset to the latest,
    and those of a streaming query over the same.
    """
    session = session_with_jars(jars)
    options = {"kafka.bootstrap.servers": servers, **TOPIC}
    batch = session.read.format("kafka").options(**options).option("endingOffsets", "latest").load()
    found = {"batch": _rows(batch), "stream": _streamed(session, options, checkpoints)}
    session.stop()
    sys.stdout.write(json.dumps(found))


RECORD = (
    "IF(id % 7 = 0, NULL, CAST(CONCAT('key-', id) AS BINARY)) AS key",
    "IF(id % 11 = 0, NULL, CAST(CONCAT('value-', id) AS BINARY)) AS value",
    "ARRAY(NAMED_STRUCT('key', 'number', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers",
)


class Copier:
    """The two queries over one session."""

    def __init__(self, session: SparkSession, servers: str, checkpoints: str) -> None:
        self._session = session
        self._servers = {"kafka.bootstrap.servers": servers}
        self._checkpoints = checkpoints

    def write(self, topic: str, first: int, count: int) -> None:
        records = self._session.range(first, first + count).selectExpr(*RECORD)
        records.write.format("kafka").options(**self._servers, topic=topic).save()

    def copy(self, source: str, target: str) -> None:
        """Write what the stream has not written yet."""
        reading = {"subscribe": source, "startingOffsets": "earliest", "includeHeaders": "true"}
        stream = self._session.readStream.format("kafka").options(**self._servers, **reading).load()
        query = (
            stream.select("key", "value", "headers")
            .writeStream.format("kafka")
            .options(**self._servers, topic=target)
            .option("checkpointLocation", self._checkpoints)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def write(servers: str, jars: str, checkpoints: str, first: str, second: str, count: str) -> None:
    """Write to topics.

    A batch query writes `count` records to the topic `first`, and a streaming query copies them to
    `second`; then both go on with as many more, the stream from its checkpoint.
    """
    session = session_with_jars(jars)
    copier = Copier(session, servers, checkpoints)
    for begin in (0, int(count)):
        copier.write(first, begin, int(count))
        copier.copy(first, second)
    session.stop()


def committed_offsets(session: SparkSession, servers: str) -> dict[str, Any]:
    """Run the examples of the page on functions, each with the names of the one before.

    Returns the rows that the first one shows, and how many records the others decode or do not.
    """
    code = page_block("docs/spark/functions.md", "python", "kvorum_consumer_offsets_record(key")
    assert code.endswith(SHOWN)
    assert BROKER in code
    code = code.removesuffix(SHOWN).replace(BROKER, servers)
    # Its last statement is the query: the name takes what the page shows.
    head, query, tail = code.rpartition("spark.sql(")
    names = _run_example(f"{head}shown = {query}{tail}", {"spark": session})
    on_columns = page_block("docs/spark/functions.md", "python", "import consumer_offsets_record")
    records = _run_example(on_columns, names)["records"]
    # Its own annotation of the arguments is not whole.
    sql: Callable[[str], Any] = cast("Any", session).sql
    strict = sql(page_block("docs/spark/functions.md", "sql", "'FAILFAST'"))
    return {
        "shown": [list(row) for row in names["shown"].collect()],
        "on_columns": _offsets_and_errors(records),
        "strict": _offsets_and_errors(strict.toDF("record")),
    }


def _offsets_and_errors(records: Any) -> list[int]:
    """Return how many committed offsets there are, and how many records could not be decoded."""
    counted = records.selectExpr(
        "count_if(record.type = 'OFFSET_COMMIT' AND NOT record.is_tombstone)", "count(record.error)"
    )
    return list(counted.first())


def _run_example(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run Python of a page, and return all names that are there after it."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "example.py")
        program.write_text(code, encoding="utf-8")
        return runpy.run_path(str(program), init_globals=names)


def transactions(session: SparkSession, servers: str) -> list[dict[str, Any]]:
    """Return the records of __transaction_state, in their order."""
    stored = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "__transaction_state")
        .option("startingOffsets", "earliest")
        .load()
    )
    record = transaction_state_record("key", "value").alias("record")
    rows = stored.select("partition", "offset", record).orderBy("partition", "offset")
    return [
        row["record"].asDict()
        for row in rows.selectExpr(
            "named_struct('id', record.transactional_id, 'producer_id', record.producer_id, "
            "'status', record.transaction_status, 'error', record.error, "
            "'partitions', to_json(record.transaction_partitions)) AS record"
        ).collect()
    ]


def read_by_functions(servers: str, jars: str) -> None:
    """Run the examples of docs/spark/functions.md on a broker.

    Prints one JSON object: what they find, and every record of __transaction_state, decoded.
    """
    session = session_with_jars(jars)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    found = {
        "offsets": committed_offsets(session, servers),
        "transactions": transactions(session, servers),
    }
    session.stop()
    sys.stdout.write(json.dumps(found))


def read_isolated(jars: str, topic: str, *servers: str) -> None:
    """Read a topic of some clusters at each isolation level, by batch queries.

    Prints one JSON list: for each cluster partition, offset and value of its records, by level.
    """
    session = session_with_jars(jars)
    found = [
        {level: _records_at(session, one, topic, level) for level in ISOLATION_LEVELS}
        for one in servers
    ]
    session.stop()
    sys.stdout.write(json.dumps(found))


def _records_at(session: SparkSession, servers: str, topic: str, level: str) -> list[list[Any]]:
    options = {"kafka.bootstrap.servers": servers, "kafka.isolation.level": level}
    frame = session.read.format("kafka").options(**options, subscribe=topic).load()
    columns = ("partition", "offset", "CAST(value AS STRING)")
    rows = frame.selectExpr(*columns).orderBy("partition", "offset").collect()
    return [list(row) for row in rows]


def copy_committed(servers: str, jars: str, checkpoints: str, source: str, target: str) -> None:
    """Copy the committed records of a topic by a streaming query until it is killed."""
    session = session_with_jars(jars)
    stream = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    copies = (
        stream.select("key", "value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", checkpoints)
    )
    while True:
        query = copies.start()
        sys.stdout.write(f"{STREAMS}\n")
        sys.stdout.flush()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if FAILED_METRICS not in str(error):
                raise


PROGRAMS = {
    program.__name__: program
    for program in (read_metadata, write, read_by_functions, read_isolated, copy_committed)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
