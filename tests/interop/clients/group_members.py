"""Members of groups by Python libraries, each polling in a thread of its own."""

import importlib
import threading
from typing import Any, Final

from tests.support.waiting import Threads

confluent: Final[Any] = importlib.import_module("confluent_kafka")


class Member:
    """A member of a group, which polls in a thread of its own as an application does."""

    def __init__(self, consumer: Any) -> None:
        self.values: list[bytes] = []
        self.partitions: set[int] = set()
        self._consumer = consumer
        self._is_over = threading.Event()
        self._threads = Threads()
        self._threads.start(self._run)

    def close(self) -> None:
        self._is_over.set()
        self._threads.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            self.values += self._poll()
            self.partitions = {one.partition for one in self._consumer.assignment()}
        self._consumer.close()

    def _poll(self) -> list[bytes]:
        raise NotImplementedError


class Confluent(Member):
    def __init__(self, servers: str, group: str, topic: str, **settings: object) -> None:
        own = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = confluent.Consumer({**own, **settings})
        consumer.subscribe([topic])
        super().__init__(consumer)

    def _poll(self) -> list[bytes]:
        message = self._consumer.poll(0.2)
        return [] if message is None or message.error() is not None else [message.value()]


class KafkaPython(Member):
    def __init__(self, servers: str, group: str, topic: str) -> None:
        library: Any = importlib.import_module("kafka")
        super().__init__(
            library.KafkaConsumer(
                topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest"
            )
        )

    def _poll(self) -> list[bytes]:
        polled = self._consumer.poll(timeout_ms=200).values()
        return [record.value for records in polled for record in records]
