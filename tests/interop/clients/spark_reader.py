"""Reads ``__cluster_metadata`` with Spark's Kafka connector; a program of its own.

    python -m tests.interop.clients.spark_reader SERVERS JARS CHECKPOINTS

Prints one JSON object: the records of a batch query from the earliest offset to the latest, and
those of a streaming query over the same. Spark starts a Java process with the jars in the folder.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from tests.interop.clients.spark_programs import session_with_jars

TOPIC = {"assign": '{"__cluster_metadata":[0]}', "startingOffsets": "earliest"}
COLUMNS = ("offset", "CAST(UNIX_MILLIS(timestamp) AS LONG) AS timestamp", "HEX(value) AS value")


def rows(frame: Any) -> list[list[Any]]:
    """Return offset, timestamp and value of each record, in order."""
    return [list(row) for row in frame.selectExpr(*COLUMNS).orderBy("offset").collect()]


def streamed(session: SparkSession, options: dict[str, str], folder: str) -> list[list[Any]]:
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
    return rows(session.table("records"))


def main(servers: str, jars: str, checkpoints: str) -> None:
    """Run both queries."""
    session = session_with_jars(jars)
    options = {"kafka.bootstrap.servers": servers, **TOPIC}
    batch = session.read.format("kafka").options(**options).option("endingOffsets", "latest").load()
    found = {"batch": rows(batch), "stream": streamed(session, options, checkpoints)}
    session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
