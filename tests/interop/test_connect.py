"""Kafka Connect with an exactly-once source on our brokers: its workers and brokers are killed."""

import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import THREE_REPLICAS, BrokerCluster, RunBrokers, faults
from tests.interop.clients.confluent import read_to_end
from tests.interop.connect_worker import LINE_SOURCE, ConnectWorker
from tests.support.kafka.java import Java
from tests.support.waiting import wait_for

TOPIC: Final = "lines"
CONNECTOR: Final = "reading"
BROKERS: Final = frozenset({11, 12, 13})
LINES_AT_ONCE: Final = 40
EXACTLY_ONCE: Final = {"exactly.once.source.support": "enabled"}
SOURCE: Final = {
    "connector.class": LINE_SOURCE,
    "tasks.max": "1",
    "topic": TOPIC,
    "exactly.once.support": "required",
    "transaction.boundary": "connector",
}


class Lines:
    """A file that is read into the topic."""

    def __init__(self, file: Path, servers: str) -> None:
        self.file = file
        self.written: list[str] = []
        self._servers = servers
        file.touch()

    def begin(self) -> None:
        """Write lines, and wait until they are in a transaction, which stays open."""
        first = len(self.written)
        self._write([f"line {number}" for number in range(first, first + LINES_AT_ONCE)])
        self._wait_until_read("read_uncommitted")

    def end(self) -> None:
        """Write the line that ends the transaction, and wait until it has ended."""
        self._write([f"line {len(self.written)}."])
        self._wait_until_read("read_committed")

    def _write(self, more: Sequence[str]) -> None:
        self.written += more
        with self.file.open("a", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in more)

    def _wait_until_read(self, isolation: str) -> None:
        """Wait until the last line is read."""
        wait_for(
            lambda: self.values(isolation)[-1:] == self.written[-1:],
            f"every line is a record, {isolation}",
            otherwise=lambda: self.values(isolation),
        )

    def values(self, isolation: str = "read_committed") -> list[str]:
        """Return the records of the topic."""
        messages = read_to_end(self._servers, [(TOPIC, 0)], isolation=isolation)
        return [(message.value() or b"").decode() for message in messages]


MakeWorker = Callable[[str], ConnectWorker]


@pytest.fixture
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers("kvorum", brokers=3, ours=BROKERS, settings=THREE_REPLICAS) as cluster:
        cluster.make_topic(TOPIC, ":".join(map(str, sorted(BROKERS))))
        yield cluster
        for broker in cluster.brokers.values():
            assert faults(broker) == []


@pytest.fixture
def make_worker(cluster: BrokerCluster, java: Java, tmp_path: Path) -> MakeWorker:
    def make(name: str) -> ConnectWorker:
        return ConnectWorker(tmp_path / name, cluster.servers, EXACTLY_ONCE, java=java)

    return make


def worker_of_task(workers: Collection[ConnectWorker], asked: ConnectWorker) -> ConnectWorker:
    """Wait until the asked worker says which of them has the task; return that one."""
    by_id = {worker.worker_id: worker for worker in workers}
    return by_id[wait_for(lambda: asked.worker_of_task(CONNECTOR), "a worker has the task")]


@pytest.mark.slow
def test_each_line_of_a_file_is_a_record_once_whichever_workers_and_brokers_are_killed(
    cluster: BrokerCluster, make_worker: MakeWorker, tmp_path: Path
) -> None:
    lines = Lines(tmp_path / "lines.txt", cluster.servers)
    first = make_worker("first")
    second = make_worker("second")
    with first.process, second.process:
        first.create(CONNECTOR, {**SOURCE, "file": str(lines.file)})
        lines.begin()
        lines.end()

        lines.begin()
        killed = worker_of_task((first, second), first)
        killed.process.kill()
        lines.end()
        killed.process.start()

        # Each broker leads and coordinates something.
        for broker in cluster.brokers.values():
            lines.begin()
            broker.kill()
            lines.end()
            broker.start()

        # A worker that stands still while the other one has its task comes back with an old epoch.
        lines.begin()
        zombie = worker_of_task((first, second), first)
        zombie.process.send(signal.SIGSTOP)
        lines.end()
        lines.begin()
        zombie.process.send(signal.SIGCONT)
        lines.end()
    assert lines.values() == lines.written
    assert len(lines.values("read_uncommitted")) > len(lines.written), "nothing was aborted"
