"""Records at full speed through a process that has the quorum, too: its timers are not late."""

import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from tests.support.node import COMBINED
from tests.support.ports import listens
from tests.support.quorum.quorum import MakeQuorum, Quorum
from tests.support.topics import create
from tests.support.waiting import PATIENCE_S, Threads, wait_for

from kvorum.wire.error_codes import ErrorCode

BROKER: Final = 1
TOPIC: Final = "of-much"
VALUE: Final = bytes(1024)
COUNT: Final = 150_000
# The requests of a client without an answer; librdkafka refuses more.
QUEUED_MAX: Final = 20_000


@pytest.fixture
def quorum(make_quorum: MakeQuorum) -> Iterator[Quorum]:
    """Three controllers in processes of their own; the first is a broker as well."""
    with make_quorum("kvorum", 3) as made:
        yield made


@pytest.mark.slow
def test_neither_large_nor_small_batches_cost_the_leader_its_epoch(quorum: Quorum) -> None:
    servers = start_with_broker(quorum)
    before = leader_and_epoch(quorum)
    assert create(servers, TOPIC) == [ErrorCode.NONE]
    with consumed(servers) as read:
        produce(servers, {"linger.ms": 5, "batch.size": 1_000_000}, COUNT)
        produce(servers, {"linger.ms": 0, "batch.num.messages": 1}, COUNT // 10)
        assert create(servers, "meanwhile") == [ErrorCode.NONE]
        wait_for(read.is_set, "all records have come")
    assert leader_and_epoch(quorum) == before


def start_with_broker(quorum: Quorum) -> str:
    """Start the controllers, until the one that is a broker leads; return its address."""
    quorum.configure({"process.roles": COMBINED}, BROKER)
    servers = quorum.members[BROKER].broker
    quorum.form(quorum.members)
    quorum.start()
    everybody = quorum.keys(*quorum.members)
    while (leader_id := quorum.settled(everybody).leader_id) != BROKER:
        quorum.members[leader_id].stop()
        quorum.settled(everybody)
        quorum.start(leader_id)
    quorum.wait_for(lambda: listens(servers), "the broker listens")
    return servers


def leader_and_epoch(quorum: Quorum) -> tuple[int, int]:
    found = quorum.described()
    assert found is not None
    return found.leader_id, found.leader_epoch


def produce(servers: str, settings: dict[str, int], count: int) -> None:
    """Send records as fast as they are taken; each is acknowledged."""
    producer = Producer({"bootstrap.servers": servers, **settings})
    failed: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(str(error))

    for _ in range(count):
        while len(producer) >= QUEUED_MAX:
            producer.poll(0.1)
        producer.produce(TOPIC, VALUE, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


@contextmanager
def consumed(servers: str) -> Generator[threading.Event]:
    """Read the topic in a thread; the event is set once all records have come."""
    everything, ended = threading.Event(), threading.Event()

    def read() -> None:
        settings = {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
        with closing(Consumer(settings)) as consumer:
            consumer.subscribe([TOPIC])
            found = 0
            while not ended.is_set():
                found += len(consumer.consume(1000, 0.2))
                if found == COUNT + COUNT // 10:
                    everything.set()

    reader = Threads()
    reader.start(read)
    try:
        yield everything
    finally:
        ended.set()
        reader.join()
