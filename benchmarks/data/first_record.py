"""From nothing to the first record that a consumer of a new group has read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.data.brokers import WAIT_S, broker
from benchmarks.node_start import Candidate
from confluent_kafka import Consumer, Producer

from kvorum.testing import Cluster

TOPIC = "first"
Started = AbstractContextManager[str]
"""A cluster that is begun and ended; the value is its bootstrap servers."""


@contextmanager
def embedded() -> Generator[str]:
    """Run the cluster that a test has by ``with Cluster()``."""
    with Cluster() as cluster:
        yield cluster.bootstrap_servers


@contextmanager
def of_candidate(candidate: Candidate) -> Generator[str]:
    """Format and run a node in a process of its own."""
    with broker(candidate, dict(os.environ)) as running:
        yield running.servers


def first_record_s(begin: Callable[[], Started]) -> float:
    """Return the seconds until a record was produced and consumed by a group, start included."""
    before = time.perf_counter()
    with begin() as servers:
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
