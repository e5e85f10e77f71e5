"""The quorum inside of combined nodes, without records and under a full load of them.

A producer and a consumer do as much as they can. Meanwhile the leader of the quorum is asked to
describe it, which needs no disk; a broker sends heartbeats; and topics are created. An election may
not take place. How late the leader's event loop itself is comes from its process (`watched_loop`).

The slow disks are those of `tests/support/troubled_disks.py`.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final

from benchmarks.controller_client import ControllerClient
from benchmarks.data.brokers import WAIT_S
from benchmarks.node_start import CLUSTER_ID
from benchmarks.watched_loop import read_latenesses_ms, watched_command
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.node import Node
from tests.support.quorum.quorum import Quorum

from kvorum.wire.uuid_text import uuid_to_text

NODE_COUNTS: Final = (1, 3)
SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 5.0
TOPIC: Final = "load"
PARTITIONS: Final = 6
RECORD_BYTES: Final = 1024
DESCRIPTION_EVERY_S: Final = 0.02
OTHERS_EVERY_S: Final = 0.1
POLL_S: Final = 0.1
MIB: Final = 1 << 20
# Segments are finished, and deleted, all the while.
RETENTION: Final = {
    "log.segment.bytes": str(16 * MIB),
    "log.retention.bytes": str(64 * MIB),
    "log.retention.check.interval.ms": "2000",
    "log.segment.delete.delay.ms": "1000",
}
# The work of those processes has no part in what is measured in this one.
_processes: Final = multiprocessing.get_context("fork")


@dataclass
class Latencies:
    """The times that one kind of request took, in milliseconds."""

    kind: str
    ms: list[float] = field(default_factory=list[float])

    def __str__(self) -> str:
        p99 = statistics.quantiles(self.ms, n=100, method="inclusive")[98]
        return (
            f"  {self.kind:<24} median {statistics.median(self.ms):7.1f} ms, "
            f"p99 {p99:7.1f} ms, max {max(self.ms):7.1f} ms of {len(self.ms)}"
        )


class Observer:
    """Sends the three kinds of requests to the leader of a quorum, each at an even pace."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        leader = quorum.leader()
        self._leader = leader.controller
        self._properties = leader.properties
        self._client = ControllerClient("observer")
        self._client.play_broker([self._leader])

    def observe(self) -> list[Latencies]:
        """Return how long the requests took that were sent for a while."""
        before = self._quorum.described()
        describing, beating, creating = (
            ControllerClient("describing"),
            self._client.for_same_broker(),
            ControllerClient(f"created-{time.monotonic_ns()}"),
        )
        requests: tuple[tuple[str, float, Callable[[], object]], ...] = (
            (
                "description, without disk",
                DESCRIPTION_EVERY_S,
                lambda: describing.describe(self._leader),
            ),
            ("heartbeat", OTHERS_EVERY_S, lambda: beating.beat_once([self._leader])),
            ("commit of a topic", OTHERS_EVERY_S, lambda: creating.create_topic([self._leader])),
        )
        found = [Latencies(kind) for kind, _, _ in requests]
        threads = [
            threading.Thread(target=_ask_for_a_while, args=(ask, every_s, latencies.ms))
            for (_, every_s, ask), latencies in zip(requests, found, strict=True)
        ]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ended = time.monotonic()
        after = self._quorum.described()
        if before is None or after is None or before.leader_epoch != after.leader_epoch:
            raise RuntimeError(f"an election took place: {self._quorum.last_words()}")
        late = read_latenesses_ms(self._properties, began, ended)
        return [Latencies("the event loop is late", late), *found]


def _ask_for_a_while(ask: Callable[[], object], every_s: float, ms: list[float]) -> None:
    end = time.perf_counter() + SECONDS
    while (began := time.perf_counter()) < end:
        ask()
        took = time.perf_counter() - began
        ms.append(1000 * took)
        time.sleep(max(0.0, every_s - took))


def run() -> None:
    """Measure one combined node and three, on the disk of this machine and on slow ones."""
    for count in NODE_COUNTS:
        for is_slow in (False, True):
            with _combined_nodes(count, is_slow=is_slow) as quorum:
                _measure(quorum, f"{count} combined, {'slow disks' if is_slow else 'this disk'}")


def _measure(quorum: Quorum, what: str) -> None:
    servers = ",".join(one.broker for one in quorum.members.values())
    _create_topic(servers, len(quorum.members))
    observer = Observer(quorum)
    time.sleep(SETTLE_SECONDS)
    _show(f"{what}, without load", observer.observe())
    with _load(servers) as rates:
        time.sleep(SETTLE_SECONDS)
        began, sent, read = time.monotonic(), *(rate.value for rate in rates)
        found = observer.observe()
        passed = time.monotonic() - began
        produced, consumed = (
            (rate.value - before) * RECORD_BYTES / MIB / passed
            for rate, before in zip(rates, (sent, read), strict=True)
        )
    _show(f"{what}, {produced:.1f} MiB/s produced and {consumed:.1f} MiB/s consumed", found)


def _show(title: str, found: Sequence[Latencies]) -> None:
    print(f"{title}: no election", *found, sep="\n", flush=True)


@contextmanager
def _combined_nodes(count: int, *, is_slow: bool) -> Generator[Quorum]:
    with tempfile.TemporaryDirectory() as name:
        members = [
            Node(Path(name) / str(node_id), RETENTION, node_id=node_id)
            for node_id in range(1, count + 1)
        ]
        quorum = Quorum(members)
        voters = ",".join(
            f"{one.node_id}@{one.controller}:{uuid_to_text(bytes([one.node_id]) * 16)}"
            for one in members
        )
        with quorum:
            for one in members:
                one.format(("--initial-controllers", voters), cluster_id=CLUSTER_ID)
                one.process.command = watched_command(one.properties, is_slow=is_slow)
            quorum.start()
            for one in members:
                one.process.come_up()
            yield quorum


def _create_topic(servers: str, replicas: int) -> None:
    # The stub of create_topics leaves out type parameters.
    admin: Any = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)]).values():
        future.result(WAIT_S)


@contextmanager
def _load(servers: str) -> Generator[tuple[Synchronized[int], Synchronized[int]]]:
    """Produce and consume; yield the counts of records acknowledged and read so far."""
    is_over = _processes.Event()
    sent, read = _processes.Value("q", 0), _processes.Value("q", 0)
    running = [
        _processes.Process(target=_produce, args=(servers, sent, is_over), daemon=True),
        _processes.Process(target=_consume, args=(servers, read, is_over), daemon=True),
    ]
    for one in running:
        one.start()
    try:
        yield sent, read
    finally:
        is_over.set()
        for one in running:
            one.join()


def _produce(servers: str, sent: Synchronized[int], is_over: Event) -> None:
    def delivered(error: object, _: object) -> None:
        if error is None:
            sent.value += 1

    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 5})
    payload = bytes(RECORD_BYTES)
    partition = 0
    while not is_over.is_set():
        partition = (partition + 1) % PARTITIONS
        try:
            producer.produce(TOPIC, payload, partition=partition, on_delivery=delivered)
            producer.poll(0)
        except BufferError:
            producer.poll(POLL_S)


def _consume(servers: str, read: Synchronized[int], is_over: Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "load",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    while not is_over.is_set():
        read.value += sum(one.error() is None for one in consumer.consume(1000, POLL_S))
