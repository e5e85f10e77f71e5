"""Records that an idempotent producer writes all the while, and the logs of all their replicas."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Producer
from tests.interop.broker_cluster import BrokerCluster
from tests.support.threads import Threads
from tests.support.waiting import PATIENCE_S, wait_for

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


def check(cluster: BrokerCluster, writer: Writer, brokers: Iterable[int]) -> None:
    """Check that every replica has everything once, in order, and the same bytes."""
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
    for log in logs().values():
        assert numbers_in(log) == list(range(writer.sent))


def _sizes(logs: dict[int, bytes]) -> str:
    found = {node_id: (len(log), len(numbers_in(log))) for node_id, log in logs.items()}
    return f"the logs differ; bytes and records: {found}"
