"""Records that producers write all the while, and what replicas and groups have of them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Self, TypeVar

from confluent_kafka import Consumer, Message, Producer
from tests.interop.broker_cluster import BrokerCluster
from tests.interop.clients.confluent import POLL_TIMEOUT_S, read_to_end
from tests.support.waiting import PATIENCE_S, Threads, wait_for

from kvorum.wire.records import read_batches

WRITER_PAUSE_S = 0.002


_Sent = TypeVar("_Sent")


class _Flow(Generic[_Sent]):
    """Numbers or positions that are sent: which were acknowledged, and why others were not."""

    acknowledged: list[_Sent]
    failed: list[str]

    def wait_for_acknowledged(self, more: int) -> None:
        """Wait until so many more records than by now are acknowledged."""
        wanted = len(self.acknowledged) + more
        wait_for(
            lambda: len(self.acknowledged) >= wanted,
            f"{wanted} records are acknowledged",
            otherwise=lambda: f"{len(self.acknowledged)} are; {self.failed}",
        )


@dataclass
class Writer(_Flow[int]):
    """Sends numbers to one partition with acks=all; use as a context, its end flushes."""

    servers: str
    topic: str
    partition: int = 0
    sent: int = 0
    acknowledged: list[int] = field(default_factory=list[int])
    failed: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._ends = threading.Event()
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._send)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._threads.join()

    def _send(self) -> None:
        settings = {"bootstrap.servers": self.servers, "log_level": 0, "linger.ms": 2}
        # A broker that is stopped does not close its connections.
        settings |= {"socket.timeout.ms": 5000, "enable.idempotence": True, "acks": "all"}
        producer = Producer(settings)
        while not self._ends.is_set():
            number = self.sent
            self.sent += 1

            def delivered(error: object, _: object, number: int = number) -> None:
                if error is None:
                    self.acknowledged.append(number)
                else:
                    self.failed.append(f"{number}: {error}")

            producer.produce(
                self.topic, str(number), partition=self.partition, on_delivery=delivered
            )
            producer.poll(0)
            self._ends.wait(WRITER_PAUSE_S)
        producer.flush(PATIENCE_S)


def log_bytes(folder: Path, topic: str, partition: int = 0) -> bytes:
    """Return the log of a partition, in whichever directory of a broker it is."""
    files = sorted(folder.glob(f"*/{topic}-{partition}/*.log"), key=lambda file: file.name)
    return b"".join(file.read_bytes() for file in files)


def numbers_in(log: bytes) -> list[int]:
    """Return what the writer wrote."""
    return [
        int(record.value or b"")
        for batch in read_batches(log, is_cut_allowed=True)
        if not batch.is_control
        for record in batch.records()
    ]


@dataclass(frozen=True, slots=True)
class Flaws:
    """Count the records that logs lack, have once more, and have after a later one."""

    lost: int = 0
    doubled: int = 0
    reordered: int = 0

    def __add__(self, other: Flaws) -> Flaws:
        return Flaws(
            self.lost + other.lost, self.doubled + other.doubled, self.reordered + other.reordered
        )


def flaws_in(numbers: Sequence[int], acknowledged: Collection[int]) -> Flaws:
    """Compare the numbers of a log with those that were acknowledged."""
    once = dict.fromkeys(numbers)
    return Flaws(
        lost=len(set(acknowledged) - once.keys()),
        doubled=len(numbers) - len(once),
        reordered=sum(later < earlier for earlier, later in pairwise(once)),
    )


def flaws_of(cluster: BrokerCluster, writer: Writer, brokers: Iterable[int]) -> Flaws:
    """Return the flaws of all replicas together, once they have the same bytes.

    Every record that the writer sent has to be acknowledged.
    """
    assert writer.failed == []
    assert sorted(writer.acknowledged) == list(range(writer.sent))
    folders = {node_id: cluster.brokers[node_id].folder for node_id in brokers}

    def logs() -> dict[int, bytes]:
        return {
            node_id: log_bytes(folder, writer.topic, writer.partition)
            for node_id, folder in folders.items()
        }

    wait_for(
        lambda: len(set(logs().values())) == 1,
        f"the replicas of {writer.topic} are the same",
        otherwise=lambda: _sizes(logs()),
    )
    return sum([flaws_in(numbers_in(log), writer.acknowledged) for log in logs().values()], Flaws())


def check(cluster: BrokerCluster, writer: Writer, brokers: Iterable[int]) -> None:
    """Check that every replica has everything once, in order, and the same bytes."""
    assert flaws_of(cluster, writer, brokers) == Flaws()


def _sizes(logs: dict[int, bytes]) -> str:
    found = {node_id: (len(log), len(numbers_in(log))) for node_id, log in logs.items()}
    return f"the logs differ; bytes and records: {found}"


PAUSE_BETWEEN_RECORDS_S = 0.005
Position = tuple[int, int]
"""A partition and the number that its record holds."""


@dataclass
class Traffic(_Flow[Position]):
    """Numbers, sent by an idempotent producer with acks=all to each partition in turn.

    A consumer of a group reads along. Use as a context: the end of the block waits until all that
    was sent is acknowledged and read. `security` are settings of all clients.
    """

    servers: str
    topic: str
    partitions: int
    group: str = ""
    security: Mapping[str, str] = field(default_factory=dict[str, str])
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

    def check(self) -> None:
        """Check that all was acknowledged, is there once and in order, and reached the group."""
        assert self.failed == []
        assert sorted(self.acknowledged) == sorted(self.sent)
        found = read_all(self.servers, self.topic, self.partitions, security=self.security)
        assert found == {
            partition: [number for where, number in self.sent if where == partition]
            for partition in range(self.partitions)
        }
        assert self.read_by_group == set(self.sent)

    def _send(self) -> None:
        settings = {"bootstrap.servers": self.servers, "log_level": 0, "linger.ms": 5}
        settings |= {"enable.idempotence": True, "acks": "all"}
        producer = Producer({**settings, **self.security})
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
        consumer = Consumer({**settings, **self.security, "auto.offset.reset": "earliest"})
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
    servers: str,
    topic: str,
    partitions: int,
    *,
    isolation: str = "read_uncommitted",
    security: Mapping[str, str] = MappingProxyType({}),
) -> dict[int, list[int]]:
    """Return the numbers that are in each partition, from its first record to its last."""
    found: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
    places = [(topic, partition) for partition in found]
    for message in read_to_end(servers, places, isolation=isolation, security=security):
        partition, number = _position(message)
        found[partition].append(number)
    return found
