"""Reads ``__cluster_metadata`` with Spark's Kafka connector; a program of its own.

    python spark_reader.py SERVERS JARS CHECKPOINTS

Prints one JSON object: the records of a batch query from the earliest offset to the latest, and
those of a streaming query over the same. Spark starts a Java process with the jars in the folder.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kvorum.spark.session import build_session

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
    paths = ",".join(str(jar) for jar in sorted(Path(jars).glob("*.jar")))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {paths} pyspark-shell"
    session = build_session(master="local[1]")
    options = {"kafka.bootstrap.servers": servers, **TOPIC}
    batch = session.read.format("kafka").options(**options).option("endingOffsets", "latest").load()
    found = {"batch": rows(batch), "stream": streamed(session, options, checkpoints)}
    session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
