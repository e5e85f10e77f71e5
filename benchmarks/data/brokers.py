"""One combined node that carries records, ours or real Kafka, each started as its users do.

Its first figure is the time from nothing to the first record that a consumer of a new group has
read.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from benchmarks.node_start import (
    START_SECONDS_MAX,
    Candidate,
    configured,
    resident_mib,
    running,
    wait_for_first_answer,
)
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kvorum.testing import Cluster

WAIT_S = 30.0
NOTHING_ELSE: Final[Mapping[str, str]] = MappingProxyType({})
TOPIC = "first"


class RunningBroker(NamedTuple):
    servers: str
    process_id: int

    @property
    def memory_mib(self) -> float:
        return resident_mib(self.process_id)

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        # The stub of create_topics leaves out type parameters.
        admin: Any = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(WAIT_S)


Started = Callable[[], AbstractContextManager[RunningBroker]]
"""Begins a broker, which ends with the context."""


@contextmanager
def broker(
    candidate: Candidate, more: Mapping[str, str] = NOTHING_ELSE
) -> Generator[RunningBroker]:
    """Format a directory, and run the candidate on it with `more` settings than the usual ones."""
    with tempfile.TemporaryDirectory() as name:
        node = configured(candidate, Path(name), more)
        subprocess.run(node.format_command, check=True, capture_output=True)
        with running(node.run_command) as process:
            deadline = time.perf_counter() + START_SECONDS_MAX
            wait_for_first_answer(node.address, deadline_seconds=deadline)
            yield RunningBroker(str(node.address), process.pid)


@contextmanager
def embedded() -> Generator[RunningBroker]:
    """Run the cluster that a test has by ``with Cluster()``."""
    with Cluster() as cluster:
        yield RunningBroker(cluster.bootstrap_servers, os.getpid())


def first_record_s(begin: Started) -> float:
    """Return the seconds until a record was produced and consumed by a group, start included."""
    before = time.perf_counter()
    with begin() as running_broker:
        servers = running_broker.servers
        producer = Producer({"bootstrap.servers": servers})
        producer.produce(TOPIC, b"value")
        if producer.flush(WAIT_S):
            raise TimeoutError("the first record is not acknowledged")
        settings = {"bootstrap.servers": servers, "group.id": "first"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe([TOPIC])
        try:
            _wait_for_record(consumer)
            return time.perf_counter() - before
        finally:
            consumer.close()


def _wait_for_record(consumer: Consumer) -> None:
    deadline = time.perf_counter() + WAIT_S
    while time.perf_counter() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            return
    raise TimeoutError("no record has come")
