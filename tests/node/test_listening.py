"""The sockets of servers: bound for one alone, and unknown to the loop after a cancelled start."""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from tests.support.waiting import StandingClock

from kvorum.metadata.api import RequestError
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.embedded.node import EmbeddedNode, prepare_nodes
from kvorum.node.errors import NodeStartError
from kvorum.node.metrics.http_server import HttpServer
from kvorum.node.serving.connection_quotas import ConnectionQuotas, Limits
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import Session
from kvorum.node.serving.socket_server import SocketServer, bind
from kvorum.node.sockets import close_listening, let_port_be_reused
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.testing import Cluster

LOOPBACK = "127.0.0.1"


class Server(Protocol):
    """A server on a bound socket."""

    async def start(self, bound: socket.socket) -> None: ...

    async def stop(self) -> None: ...


async def _answer(frame: bytes, session: Session) -> ResponseFrame:
    raise AssertionError((frame, session))


def _refuse(frame: bytes, session: Session, error: RequestError) -> ResponseFrame:
    raise AssertionError((frame, session, error))


def socket_server() -> SocketServer:
    clock = StandingClock()
    rules = ConnectionRules(
        listener="PLAINTEXT",
        protocol=SecurityProtocol.PLAINTEXT,
        frame_bytes_max=100,
        answer=_answer,
        refuse=_refuse,
        limits=ConnectionQuotas(Limits(total_max=1, per_address_max=1), clock),
        runtime=AsyncioRuntime(clock, thread_name="unused"),
    )
    return SocketServer(rules, idle_ms_max=0, backlog=1)


def http_server() -> HttpServer:
    return HttpServer({})


@pytest.mark.parametrize("make", [socket_server, http_server])
async def test_a_start_that_is_cancelled_can_be_undone(make: Callable[[], Server]) -> None:
    server = make()
    bound = socket.create_server((LOOPBACK, 0))
    address = bound.getsockname()
    descriptor = bound.fileno()
    starting = asyncio.create_task(server.start(bound))
    # It has begun to listen, and waits for one turn of the loop.
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await server.stop()
    bound.close()
    assert not asyncio.get_running_loop().remove_reader(descriptor)
    socket.create_server(address).close()


def test_a_port_whose_connections_linger_is_bound_for_one_alone() -> None:
    """A killed node keeps its port for its restart, whatever other programs bind meanwhile."""
    listening = bind("PLAINTEXT", LOOPBACK, 0)
    address = listening.getsockname()
    let_port_be_reused(listening)
    listening.listen()
    with socket.create_connection(address):
        accepted, _ = listening.accept()
        close_listening(listening)
        accepted.close()
        with bind("PLAINTEXT", LOOPBACK, address[1]) as waiting, socket.socket() as other:
            let_port_be_reused(other)
            with pytest.raises(OSError, match="Address already in use"):
                other.bind(address)
            let_port_be_reused(waiting)
            waiting.listen()


def test_a_port_with_lingering_connections_is_not_free_for_those_who_look_for_one() -> None:
    listening = bind("PLAINTEXT", LOOPBACK, 0)
    let_port_be_reused(listening)
    listening.listen()
    host, port = listening.getsockname()
    with socket.create_connection((host, port)):
        accepted, _ = listening.accept()
        close_listening(listening)
        accepted.close()
        with pytest.raises(NodeStartError):
            bind("PLAINTEXT", LOOPBACK, port, takes_lingering=False)
        bind("PLAINTEXT", LOOPBACK, port).close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a copy of a socket listens")
@pytest.mark.parametrize("strike", [Cluster.kill, Cluster.restart])
def test_no_other_program_gets_the_ports_of_a_node_between_its_lives(
    kvorum_cluster_factory: Callable[..., Cluster],
    monkeypatch: pytest.MonkeyPatch,
    strike: Callable[[Cluster, int], None],
) -> None:
    taken: list[int] = []

    def prepare_after_another(*arguments: Any, **options: Any) -> dict[int, EmbeddedNode]:
        with socket.socket() as other:
            try:
                other.bind((LOOPBACK, port))
            except OSError:
                return prepare_nodes(*arguments, **options)
        taken.append(port)
        return prepare_nodes(*arguments, **options)

    cluster = kvorum_cluster_factory(controllers=1, brokers=1)
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    monkeypatch.setattr("kvorum.node.embedded.cluster.prepare_nodes", prepare_after_another)
    strike(cluster, 1)
    assert taken == []
    cluster.restart(1)
    assert cluster.bootstrap_servers.endswith(f":{port}")
