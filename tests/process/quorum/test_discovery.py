"""Controllers and brokers that know one address alone: a balancer's, in front of all (KIP-642)."""

import socket
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Self

import pytest
from tests.process.quorum.unharmed_quorum import commit_topic
from tests.support.node import NO_VOTERS, Node
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.quorum.quorum import describe
from tests.support.quorum.topic_writers import wait_until_reached, want
from tests.support.topics import create, read_topics
from tests.support.waiting import Threads

from kvorum.wire.error_codes import ErrorCode

CHUNK_BYTES = 65536
CONNECT_TIMEOUT_S = 5.0


class Balancer:
    """Listens on a port of its own; as a context it forwards, once it is pointed at ports."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._ports: tuple[int, ...] = ()
        self._next: Iterator[int] = cycle(self._ports)
        self._carried: set[socket.socket] = set()
        self._threads = Threads()
        self.forwarded: list[int] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads.start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits for connections is woken by the shutdown, not by closing.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._drop()
        self._threads.join()

    def point_at(self, ports: Sequence[int]) -> None:
        """Change its mind: forward to these in turns from now on, and drop what it carries."""
        with self._lock:
            self._ports = tuple(ports)
            self._next = cycle(ports)
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            carried, self._carried = self._carried, set()
        for one in carried:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._threads.start(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        with self._lock:
            port = next(self._next)
        try:
            server = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        with client, server:
            with self._lock:
                # It may have changed its mind while the connection was made.
                if port not in self._ports:
                    return
                self.forwarded.append(port)
                self._carried |= {client, server}
            back = Threads()
            back.start(_pump, server, client)
            _pump(client, server)
            back.join()
            with self._lock:
                self._carried -= {client, server}


def _pump(source: socket.socket, destination: socket.socket) -> None:
    """Carry bytes until one of the two ends, and end the other."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            destination.sendall(data)
    for one in (source, destination):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


pytestmark = pytest.mark.slow


@contextmanager
def behind_balancer(
    folder: Path, count: int, *, observers: tuple[int, ...]
) -> Generator[tuple[ProxiedQuorum, Balancer]]:
    """Run controllers that know a balancer alone; it sends connections to all of them in turns."""
    with ExitStack() as resources:
        balancer = resources.enter_context(Balancer())
        settings = {"controller.quorum.bootstrap.servers": balancer.address}
        quorum = ProxiedQuorum(
            folder, count, is_dynamic=True, settings=settings, observers=observers
        )
        balancer.point_at([one.controller_port for one in quorum.members.values()])
        yield resources.enter_context(quorum), balancer


def broker(folder: Path, node_id: int, *, bootstrap_server: str) -> Node:
    """Format a broker that knows one address."""
    settings = {"process.roles": "broker", "controller.quorum.bootstrap.servers": bootstrap_server}
    return Node(folder / f"broker-{node_id}", settings, node_id=node_id).format(NO_VOTERS)


def test_each_new_leader_is_found_behind_one_address(tmp_path: Path) -> None:
    with behind_balancer(tmp_path, 4, observers=(4,)) as (quorum, balancer):
        for _ in range(3):
            leader = quorum.leader()
            quorum.wait_until_settled()
            quorum.kill(leader.node_id)
            quorum.leader()
            quorum.start(leader.node_id)
        quorum.wait_until_settled()
        assert set(balancer.forwarded) == {one.controller_port for one in quorum.members.values()}


def test_voters_who_moved_are_found_by_who_ran_and_by_who_starts(tmp_path: Path) -> None:
    ones, others = (1, 2), (3, 4)
    with (
        behind_balancer(tmp_path, 4, observers=others) as (quorum, balancer),
        broker(tmp_path, 8, bootstrap_server=balancer.address) as who_ran,
    ):
        want(quorum, others)
        wait_until_reached(quorum, others)
        for node_id in ones:
            quorum.stop(node_id)
        quorum.wait_for(
            lambda: create_topic(who_ran.address, "ran"), "the broker that ran has the quorum"
        )
        # Half of the connections that the balancer takes come to nothing.
        with broker(tmp_path, 9, bootstrap_server=balancer.address) as who_starts:
            quorum.wait_for(
                lambda: create_topic(who_starts.address, "starts"),
                "the one that starts finds the quorum",
            )
            quorum.wait_for(
                lambda: {"ran", "starts"} <= read_topics(who_starts.address).keys(),
                "the broker that starts sees all topics",
            )


def test_a_leader_that_is_cut_off_finds_out_and_those_it_served_find_the_next(
    tmp_path: Path,
) -> None:
    with behind_balancer(tmp_path, 4, observers=(4,)) as (quorum, balancer):
        register_broker(quorum)
        zombie = quorum.leader()
        quorum.wait_until_settled()
        voters = [one for one in quorum.members.values() if one.node_id not in {4, zombie.node_id}]
        balancer.point_at([zombie.controller_port])
        for one in voters:
            quorum.network.cut(zombie.node_id, one.node_id)
            quorum.network.cut(one.node_id, zombie.node_id)
        # It does not hear that the others have elected another one.
        quorum.wait_for(lambda: describe(zombie) is None, "who is cut off leads no more")
        quorum.wait_for(quorum.described, "the others elect somebody")
        # So far the one that is cut off was all that the balancer offered to the observer.
        balancer.point_at([one.controller_port for one in voters])
        commit_topic(quorum, "after")
        quorum.network.heal()
        quorum.wait_until_settled()
        assert quorum.leader() in voters


def create_topic(address: str, name: str) -> bool:
    """Create a topic through a broker; False where it has to be tried again."""
    try:
        (code,) = create(address, name)
    except (OSError, AssertionError):
        return False
    return code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
