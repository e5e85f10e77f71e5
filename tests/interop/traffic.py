"""Records that flow all the while: one producer, one reader of a group, and a count in the end."""

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from confluent_kafka import Consumer, Message, Producer
from tests.interop.clients.confluent_records import POLL_TIMEOUT_S, read_to_end
from tests.support.waiting import PATIENCE_S, Threads, wait_for

PAUSE_BETWEEN_RECORDS_S = 0.005
Position = tuple[int, int]
"""A partition and the number that its record holds."""


@dataclass
class Traffic:
    """Numbers, sent by an idempotent producer with acks=all to each partition in turn.

    A consumer of a group reads along. Use as a context: the end of the block waits until all that
    was sent is acknowledged and read.
    """

    servers: str
    topic: str
    partitions: int
    group: str = ""
    sent: list[Position] = field(default_factory=list[Position])
    acknowledged: list[Position] = field(default_factory=list[Position])
    failed: list[str] = field(default_factory=list[str])
    read_by_group: set[Position] = field(default_factory=set[Position])

    def __post_init__(self) -> None:
        self.group = self.group or f"readers of {self.topic}"
        self._stops_sending = threading.Event()
        self._stops_reading = threading.Event()
        self._sender, self._reader = Threads(), Threads()

    def __enter__(self) -> Self:
        self._sender.start(self._send)
        self._reader.start(self._read)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stops_sending.set()
        self._sender.join()
        try:
            if kind is None:
                wait_for(
                    lambda: self.read_by_group >= set(self.acknowledged),
                    f"{self.group} has read all that is acknowledged",
                    otherwise=lambda: set(self.acknowledged) - self.read_by_group,
                )
        finally:
            self._stops_reading.set()
            self._reader.join()

    def wait_for_acknowledged(self, more: int) -> None:
        """Wait until so many records more than by now are acknowledged."""
        wanted = len(self.acknowledged) + more
        wait_for(
            lambda: len(self.acknowledged) >= wanted,
            f"{wanted} records are acknowledged",
            otherwise=lambda: f"{len(self.acknowledged)} are; {self.failed}",
        )

    def check(self) -> None:
        """Check that all was acknowledged, is there once and in order, and reached the group."""
        assert self.failed == []
        assert sorted(self.acknowledged) == sorted(self.sent)
        stored = read_all(self.servers, self.topic, self.partitions)
        assert stored == {
            partition: [number for where, number in self.sent if where == partition]
            for partition in range(self.partitions)
        }
        assert self.read_by_group == set(self.sent)

    def _send(self) -> None:
        settings = {"bootstrap.servers": self.servers, "log_level": 0, "linger.ms": 5}
        producer = Producer({**settings, "enable.idempotence": True, "acks": "all"})
        number = 0
        while not self._stops_sending.is_set():
            position = (number % self.partitions, number)
            producer.produce(
                self.topic,
                str(number),
                partition=position[0],
                on_delivery=partial(self._delivered, position),
            )
            self.sent.append(position)
            number += 1
            producer.poll(0)
            self._stops_sending.wait(PAUSE_BETWEEN_RECORDS_S)
        producer.flush(PATIENCE_S)

    def _delivered(self, position: Position, error: object, _: object) -> None:
        if error is None:
            self.acknowledged.append(position)
        else:
            self.failed.append(f"{position}: {error}")

    def _read(self) -> None:
        settings = {"bootstrap.servers": self.servers, "group.id": self.group, "log_level": 0}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe([self.topic])
        try:
            while not self._stops_reading.is_set():
                message = consumer.poll(POLL_TIMEOUT_S)
                if message is not None and message.error() is None:
                    self.read_by_group.add(_position(message))
        finally:
            consumer.close()


def _position(message: Message) -> Position:
    partition, value = message.partition(), message.value()
    assert partition is not None
    assert isinstance(value, bytes)
    return partition, int(value)


def read_all(
    servers: str, topic: str, partitions: int, *, isolation: str = "read_uncommitted"
) -> dict[int, list[int]]:
    """Return the numbers that are in each partition, from its first record to its last."""
    found: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
    places = [(topic, partition) for partition in found]
    for message in read_to_end(servers, places, isolation=isolation):
        partition, number = _position(message)
        found[partition].append(number)
    return found
