"""Records that an idempotent producer writes all the while, and the logs of all their replicas."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

from confluent_kafka import Producer
from tests.interop.broker_cluster import BrokerCluster
from tests.support.waiting import PATIENCE_S, Threads, wait_for

from kvorum.wire.records import read_batches

PAUSE_BETWEEN_RECORDS_S = 0.002


@dataclass
class Writer:
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

    def wait_for_acknowledged(self, more: int) -> None:
        """Wait until so many more records than by now are acknowledged."""
        wanted = len(self.acknowledged) + more
        wait_for(
            lambda: len(self.acknowledged) >= wanted,
            f"{wanted} records are acknowledged",
            otherwise=lambda: f"{len(self.acknowledged)} are; {self.failed}",
        )

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
            self._ends.wait(PAUSE_BETWEEN_RECORDS_S)
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
    found = [flaws_in(numbers_in(log), writer.acknowledged) for log in logs().values()]
    return sum(found, Flaws())


def check(cluster: BrokerCluster, writer: Writer, brokers: Iterable[int]) -> None:
    """Check that every replica has everything once, in order, and the same bytes."""
    assert flaws_of(cluster, writer, brokers) == Flaws()


def _sizes(logs: dict[int, bytes]) -> str:
    found = {node_id: (len(log), len(numbers_in(log))) for node_id, log in logs.items()}
    return f"the logs differ; bytes and records: {found}"
