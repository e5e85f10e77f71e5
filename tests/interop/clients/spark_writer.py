"""Writes to topics with Spark's Kafka connector; a program of its own.

    python -m tests.interop.clients.spark_writer SERVERS JARS CHECKPOINTS FIRST SECOND COUNT

A batch query writes COUNT records to the topic FIRST, and a streaming query copies them to SECOND;
then both go on with as many more, the stream from its checkpoint. Spark starts a Java process with
the jars in the folder.
"""

import sys

from pyspark.sql import SparkSession
from tests.interop.clients.spark_programs import session_with_jars

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
        """Write records of these numbers."""
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


def main(servers: str, jars: str, checkpoints: str, first: str, second: str, count: str) -> None:
    """Write and copy, twice."""
    session = session_with_jars(jars)
    copier = Copier(session, servers, checkpoints)
    for begin in (0, int(count)):
        copier.write(first, begin, int(count))
        copier.copy(first, second)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
