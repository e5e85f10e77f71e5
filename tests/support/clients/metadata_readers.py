"""Consumers that read ``__cluster_metadata`` by an assignment made by hand."""

import gc
import importlib
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.wire.records import read_batches

POLL_S = 0.1
EARLIEST, LATEST = "earliest", "latest"


class Read(NamedTuple):
    """A record of the metadata, as a consumer got it or as it lies on the disk."""

    offset: int
    timestamp: int
    value: bytes


class Reader(Protocol):
    """A consumer at a place in the topic; `records` are all that it has read."""

    records: list[Read]

    def poll(self) -> None: ...

    def close(self) -> None: ...


class ConfluentReader:
    """confluent-kafka's Consumer (librdkafka)."""

    def __init__(
        self, bootstrap_servers: str, offset: int | None = None, *, reset: str = EARLIEST
    ) -> None:
        library: Any = importlib.import_module("confluent_kafka")
        self.records: list[Read] = []
        self.errors: list[str] = []
        self._consumer = library.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                # There is no consumer without one; no group is joined.
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": reset,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
            }
        )
        place = library.OFFSET_BEGINNING if offset is None else offset
        self._consumer.assign([library.TopicPartition(CLUSTER_METADATA_TOPIC, 0, place)])

    def poll(self) -> None:
        for message in self._consumer.consume(500, POLL_S):
            if message.error():
                self.errors.append(message.error().str())
            else:
                self.records.append(Read(message.offset(), message.timestamp()[1], message.value()))

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonReader:
    """kafka-python's KafkaConsumer."""

    def __init__(
        self, bootstrap_servers: str, offset: int | None = None, *, reset: str = EARLIEST
    ) -> None:
        library: Any = importlib.import_module("kafka")
        self.records: list[Read] = []
        self._consumer: Any = library.KafkaConsumer(
            bootstrap_servers=bootstrap_servers.split(","),
            enable_auto_commit=False,
            auto_offset_reset=reset,
            metadata_max_age_ms=500,
        )
        partition = library.TopicPartition(CLUSTER_METADATA_TOPIC, 0)
        self._consumer.assign([partition])
        if offset is None:
            self._consumer.seek_to_beginning(partition)
        else:
            self._consumer.seek(partition, offset)

    def poll(self) -> None:
        for records in self._consumer.poll(POLL_S * 1000).values():
            self.records += [Read(one.offset, one.timestamp, one.value) for one in records]

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        consumer.close()
        # The client forgets to close connections to brokers that ended.
        del consumer
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


READERS: Sequence[type[ConfluentReader | KafkaPythonReader]] = (ConfluentReader, KafkaPythonReader)


def read_all(
    kind: type[ConfluentReader | KafkaPythonReader], bootstrap_servers: str, until: int
) -> list[Read]:
    """Return every record from the beginning up to the one at offset `until`."""
    with closing(kind(bootstrap_servers)) as reader:
        while not reader.records or reader.records[-1].offset < until:
            reader.poll()
        # A client that looks for its group's coordinator has __consumer_offsets created meanwhile.
        return [record for record in reader.records if record.offset <= until]


def records_on_disk(directory: Path) -> list[Read]:
    """Return the records of a metadata log directory, without control records."""
    data = b"".join(file.read_bytes() for file in sorted(directory.glob("*.log")))
    return [
        Read(record.offset, record.timestamp, record.value or b"")
        for batch in read_batches(data, is_cut_allowed=True)
        if not batch.is_control
        for record in batch.records()
    ]
