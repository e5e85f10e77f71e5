"""Consumers of the metadata topic while leaders of the quorum, and brokers, come and go."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

import pytest
from tests.support.clients.metadata_readers import (
    READERS,
    ConfluentReader,
    KafkaPythonReader,
    Read,
    records_on_disk,
)
from tests.support.metadata_consumer import LATEST, offset_for
from tests.support.node import NO_VOTERS, Node
from tests.support.quorum.proxied_quorum import TIMES, ProxiedQuorum
from tests.support.raw_client import RawClient
from tests.support.topics import create
from tests.support.waiting import Threads, wait_for

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BROKERS = (11, 12)
SETTINGS = {"broker.session.timeout.ms": "3000"}


def make_broker(folder: Path, node_id: int, quorum: ProxiedQuorum) -> Node:
    """Format a broker of a quorum, whose metadata may be read."""
    settings = {
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": quorum.bootstrap_servers,
        "broker.heartbeat.interval.ms": "500",
        "kvorum.metadata.topic.readable": "true",
        **TIMES,
    }
    return Node(folder, settings, node_id=node_id).format(NO_VOTERS)


def end_offset_at(broker: Node) -> int:
    with RawClient(broker.address) as client:
        return offset_for(client, LATEST)[0]


class Readers:
    """Both clients, each in a thread of its own from the beginning; as a context they read."""

    def __init__(self, servers: str) -> None:
        self.readers: list[ConfluentReader | KafkaPythonReader] = [
            kind(servers) for kind in READERS
        ]
        self._failures: list[BaseException] = []
        self._is_over = threading.Event()
        self._threads = Threads()

    def __enter__(self) -> Self:
        for reader in self.readers:
            self._threads.start(self._run, reader)
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self._is_over.set()
        self._threads.join()
        if error is None:
            assert self._failures == []

    def wait_for(self, offset: int) -> None:
        """Return when everybody has read the record before `offset`."""

        def all_there() -> bool:
            assert self._failures == []
            return all(_end(reader.records) >= offset for reader in self.readers)

        wait_for(
            all_there,
            f"everybody has read as far as {offset}",
            otherwise=lambda: [_end(reader.records) for reader in self.readers],
        )

    def _run(self, reader: ConfluentReader | KafkaPythonReader) -> None:
        try:
            with closing(reader):
                while not self._is_over.is_set():
                    reader.poll()
        except BaseException as error:
            self._failures.append(error)
            raise


def _end(records: list[Read]) -> int:
    return records[-1].offset + 1 if records else 0


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[ProxiedQuorum]:
    with ProxiedQuorum(tmp_path, 3, is_dynamic=True, settings=SETTINGS) as quorum:
        quorum.leader()
        yield quorum


@pytest.fixture
def brokers(quorum: ProxiedQuorum, tmp_path: Path) -> Iterator[list[Node]]:
    with ExitStack() as stack:
        found = [
            make_broker(tmp_path / f"broker-{node_id}", node_id, quorum) for node_id in BROKERS
        ]
        for broker in found:
            stack.enter_context(broker.process)
        yield found


def create_everywhere(brokers: list[Node], *names: str) -> int:
    """Create topics; return the end of the log once every broker has them."""
    wait_for(
        lambda: set(create(brokers[0].address, *names)) <= {0, 36},
        f"{names} are created",
        otherwise=brokers[0].process.last_words,
    )
    ends = {end_offset_at(brokers[0])}

    def all_there() -> int | None:
        ends.update(end_offset_at(broker) for broker in brokers)
        return max(ends) if {end_offset_at(broker) for broker in brokers} == {max(ends)} else None

    return wait_for(all_there, "the brokers come to the same end", otherwise=lambda: ends)


def test_consumers_read_all_and_nothing_twice_under_any_leader(
    quorum: ProxiedQuorum, brokers: list[Node]
) -> None:
    # A broker names itself as the leader, so both read from the one that they ask first.
    with Readers(brokers[1].address) as readers:
        readers.wait_for(create_everywhere(brokers, "first"))
        for number in range(3):
            killed = quorum.leader()
            quorum.kill(killed.node_id)
            readers.wait_for(create_everywhere(brokers, f"after-kill-{number}"))
            quorum.start(killed.node_id)
            readers.wait_for(create_everywhere(brokers, f"after-start-{number}"))
        brokers[1].process.kill()
        end_offset = create_everywhere(brokers[:1], "at-the-other-broker")
        readers.wait_for(end_offset)
    on_disk = [
        record for record in records_on_disk(brokers[0].metadata_log) if record.offset < end_offset
    ]
    assert len({record.offset for record in on_disk}) > 30
    for reader in readers.readers:
        read = [record for record in reader.records if record.offset < end_offset]
        assert read == on_disk, type(reader).__name__


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_broker_without_a_quorum_sends_no_consumer_back_that_is_ahead_of_it(
    quorum: ProxiedQuorum,
    brokers: list[Node],
    kind: type[ConfluentReader | KafkaPythonReader],
    reset: str,
) -> None:
    create_everywhere(brokers, "before")
    leader = quorum.leader().node_id
    others = quorum.members.keys() - {leader}
    quorum.pause(*others, leader)
    # Another broker would have these records; this one does not, and cannot ask.
    ahead = end_offset_at(brokers[0]) + 1
    with closing(kind(brokers[0].address, ahead, reset=reset)) as reader:
        until = time.monotonic() + 4 * int(TIMES["controller.quorum.fetch.timeout.ms"]) / 1000
        while time.monotonic() < until:
            reader.poll()
        assert reader.records == []
        quorum.resume(leader, *others)
        quorum.leader()
        last = create_everywhere(brokers, "after-a", "after-b")

        def has_gone_on() -> bool:
            reader.poll()
            return _end(reader.records) >= last

        wait_for(has_gone_on, f"the reader goes on to {last}")
        on_disk = records_on_disk(brokers[0].metadata_log)
        read = [record for record in reader.records if record.offset < last]
        assert read == [record for record in on_disk if ahead <= record.offset < last]
