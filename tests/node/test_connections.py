"""Many connections, silent ones, and ones too many."""

import asyncio
import contextlib
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, StandingClock, wait_for, wait_for_async

from kvorum.broker.quota.rate import MetricConfig
from kvorum.metadata.api import RequestError
from kvorum.metadata.configs_image import ClientQuotasImage
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.coroutines import Signal
from kvorum.node.open_file_limit import connection_count_max, raise_descriptor_limit
from kvorum.node.serving.connection import READ_AHEAD_BYTES, OpenConnections, ServerConnection
from kvorum.node.serving.connection_quotas import ConnectionQuotas, Limits
from kvorum.node.serving.connection_rates import ConnectionRates, RateLimits
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.testing import Cluster
from kvorum.wire.headers import encode_request_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

IDLE_CONNECTIONS = 10_000
SOFTWARE = ApiVersionsRequest("test", "1")
IDLE_MS_MAX = 600
RESPONSE = bytes(1000)
StartCluster = Callable[..., Cluster]


def open_descriptors() -> int:
    """Count this process's open files, where the system tells; else guess high."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 500


def ask(client: RawClient) -> bool:
    return bool(client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers)


def test_idle_connections_do_no_harm(kvorum_cluster_factory: StartCluster) -> None:
    raise_descriptor_limit()
    cluster = kvorum_cluster_factory()
    usable = connection_count_max(has_logs=False)
    # Both ends of each connection are in this process, beside all that earlier tests left open.
    count = min(IDLE_CONNECTIONS, (usable - open_descriptors()) // 2)
    host, _, port = cluster.bootstrap_servers.partition(":")
    with contextlib.ExitStack() as idle:
        for _ in range(count - 100):
            idle.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
        with RawClient(cluster.bootstrap_servers) as client:
            assert ask(client)


def test_connections_too_many_are_refused_and_others_served(
    kvorum_cluster_factory: StartCluster,
) -> None:
    cluster = kvorum_cluster_factory(overrides={"max.connections": "12"})
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(RawClient(cluster.bootstrap_servers)) for _ in range(20)]
        alive: list[RawClient] = []
        for client in clients:
            with contextlib.suppress(AssertionError, ConnectionError):
                client.ask(SOFTWARE, ApiVersionsResponse, 3)
                alive.append(client)
        assert len(alive) == 12
        assert all(ask(client) for client in alive)
    wait_for(
        lambda: _is_served(cluster.bootstrap_servers),
        "a new connection is served, as others are gone",
        not_yet=(AssertionError, ConnectionError),
    )


def _is_served(address: str) -> bool:
    with RawClient(address) as client:
        return ask(client)


def test_silent_connections_are_closed(kvorum_cluster_factory: StartCluster) -> None:
    cluster = kvorum_cluster_factory(overrides={"connections.max.idle.ms": "300"})
    with RawClient(cluster.bootstrap_servers) as silent:
        assert silent.is_closed()


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell what a client has taken")
def test_a_client_that_takes_nothing_is_closed(kvorum_cluster_factory: StartCluster) -> None:
    cluster = kvorum_cluster_factory(overrides={"connections.max.idle.ms": str(IDLE_MS_MAX)})
    host, _, port = cluster.bootstrap_servers.partition(":")
    request = ApiVersionsRequest("deaf", "1")
    frame = with_size(encode_request_frame(request, version=4, correlation_id=1, client_id="deaf"))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        client.settimeout(0.2)
        # It takes no more once its reader is gone, or it has closed already.
        with contextlib.suppress(TimeoutError, ConnectionError):
            while True:
                client.send(frame * 2000)
        wait_for(lambda: _is_over(client), "the client that takes nothing is closed")


def _is_over(client: socket.socket) -> bool:
    """Return whether the other side has closed, whatever there is to be read before."""
    watch = select.poll()
    watch.register(client, select.POLLRDHUP)
    return bool(watch.poll(0))


class HeldTransport(asyncio.Transport):
    """A transport to a client that takes as many bytes as the test says."""

    def __init__(self, own: socket.socket) -> None:
        # Nothing is ever written to the socket: what is left unsent is known here alone.
        super().__init__({"socket": own, "peername": ("127.0.0.1", 1)})
        self.unsent_bytes = 0
        self.is_aborted = self.is_closed = False
        self._is_reading = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing to do: it is full with the first byte."""

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.unsent_bytes += len(data)

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_closed = True

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True


class Held:
    """A connection by itself: its clock stands, and its client takes what the test says."""

    def __init__(self, own: socket.socket, rates: ConnectionRates | None = None) -> None:
        self.clock = StandingClock()
        self.transport = HeldTransport(own)
        runtime = AsyncioRuntime(self.clock, thread_name="requests")
        self.asked: list[bytes] = []
        self.sessions: list[Session] = []
        self.may_answer = Signal(runtime)
        self.limits = ConnectionQuotas(Limits(total_max=1, per_address_max=1), self.clock, rates)
        rules = ConnectionRules(
            listener="PLAINTEXT",
            protocol=SecurityProtocol.PLAINTEXT,
            frame_bytes_max=100,
            answer=self._answer,
            refuse=self._refuse,
            limits=self.limits,
            runtime=runtime,
        )
        self.connection = ServerConnection(rules, OpenConnections(runtime))
        self.connection.connection_made(self.transport)

    async def _answer(self, frame: bytes, session: Session) -> ResponseFrame:
        self.sessions.append(session)
        self.asked.append(frame)
        await self.may_answer.wait()
        return ResponseFrame([RESPONSE])

    def _refuse(self, frame: bytes, session: Session, error: RequestError) -> ResponseFrame:
        raise AssertionError((frame, session, error))

    async def ask(self) -> None:
        """Send a request of one byte, and return once it is being answered."""
        self.connection.data_received(struct.pack(">i", 1) + b"?")
        await wait_for_async(lambda: self.asked or None, "the request is being answered")

    async def begin_to_send(self) -> None:
        """Ask, and return once the response waits for the client."""
        self.connection.pause_writing()
        self.may_answer.set()
        await self.ask()
        await wait_for_async(lambda: self.transport.unsent_bytes or None, "a response is sent")

    def is_closed_after(self, elapsed_ms: float) -> bool:
        """Let time pass and look at the connection, as the server does again and again."""
        self.clock.now_ms += elapsed_ms
        self.connection.close_if_idle(self.clock.now_ms - IDLE_MS_MAX)
        return self.transport.is_aborted

    async def end(self) -> None:
        self.connection.connection_lost(None)
        await wait_for_async(lambda: not self.connection.is_busy, "the response is dropped")


@pytest.fixture
def near() -> Iterator[socket.socket]:
    near, far = socket.socketpair()
    with near, far:
        yield near


async def test_a_client_that_takes_its_response_slowly_is_not_idle(near: socket.socket) -> None:
    held = Held(near)
    await held.begin_to_send()
    for _ in range(10):
        held.transport.unsent_bytes -= 1
        assert not held.is_closed_after(IDLE_MS_MAX + 1)
    assert held.is_closed_after(IDLE_MS_MAX + 1), "it takes nothing any more"
    await held.end()


async def test_a_client_that_waits_for_its_response_is_not_idle(near: socket.socket) -> None:
    held = Held(near)
    await held.ask()
    assert not held.is_closed_after(100 * IDLE_MS_MAX)
    await held.end()


def crowded() -> ConnectionRates:
    """Return the rates of a listener whose next connection has to wait for a moment."""
    limits = RateLimits(of_listeners={"PLAINTEXT": 1}, windows=MetricConfig(2, 50.0))
    rates = ConnectionRates(limits, ClientQuotasImage)
    rates.admit("PLAINTEXT", "127.0.0.2", 0.0)
    return rates


async def test_a_client_that_waits_for_its_turn_is_heard_and_answered_then(
    near: socket.socket,
) -> None:
    held = Held(near, crowded())
    held.connection.data_received(struct.pack(">i", 1) + b"?")
    assert held.transport.is_reading(), "its end is noticed"
    assert not held.asked
    held.connection.data_received(bytes(READ_AHEAD_BYTES))
    assert not held.transport.is_reading(), "it fills no memory"
    await wait_for_async(lambda: held.asked or None, "its turn has come")
    await held.end()


async def test_a_client_that_goes_before_its_turn_makes_room_for_another(
    near: socket.socket,
) -> None:
    held = Held(near, crowded())
    held.connection.connection_lost(None)
    assert held.limits.total == 0


async def test_the_end_of_a_connection_reaches_each_listener_once(near: socket.socket) -> None:
    held = Held(near)
    await held.ask()
    disconnect = held.sessions[0].disconnect
    assert disconnect is not None
    told: list[DisconnectListeners] = []
    disconnect.add(told.append)
    assert not told
    await held.end()
    held.connection.connection_lost(None)
    assert told == [disconnect]


async def test_requests_that_came_together_are_answered_in_turns(near: socket.socket) -> None:
    held = Held(near)
    held.may_answer.set()
    connection = held.connection
    asked = held.asked
    connection.data_received(b"".join(struct.pack(">i", 1) + one for one in (b"a", b"b", b"c")))
    assert asked == [b"a"], "it is answered in the turn in which it came"
    assert connection.is_busy
    connection.data_received(struct.pack(">i", 1) + b"d")
    assert asked == [b"a"], "other connections have their turn first"
    await wait_for_async(lambda: not connection.is_busy or None, "all are answered")
    assert asked == [b"a", b"b", b"c", b"d"]


async def test_responses_of_a_turn_are_sent_at_its_end(near: socket.socket) -> None:
    held = Held(near)
    held.may_answer.set()
    held.connection.data_received(struct.pack(">i", 1) + b"?")
    assert held.asked == [b"?"]
    assert held.transport.unsent_bytes == 0
    await wait_for_async(lambda: held.transport.unsent_bytes or None, "the response is sent")


async def test_a_response_that_is_due_is_sent_before_the_connection_finishes(
    near: socket.socket,
) -> None:
    held = Held(near)
    held.may_answer.set()
    held.connection.data_received(struct.pack(">i", 1) + b"?")
    held.connection.finish()
    await wait_for_async(lambda: held.transport.is_closed or None, "it is closed")
    assert held.transport.unsent_bytes == len(RESPONSE) + 4


async def test_a_connection_that_is_to_finish_answers_no_other_request(near: socket.socket) -> None:
    held = Held(near)
    await held.begin_to_send()
    held.connection.data_received(struct.pack(">i", 1) + b"?")
    held.connection.finish()
    held.connection.resume_writing()
    await wait_for_async(lambda: held.transport.is_closed or None, "it is closed")
    await wait_for_async(lambda: not held.connection.is_busy or None, "nothing is answered")
    assert held.asked == [b"?"]


async def test_a_client_that_says_something_in_time_is_not_idle(near: socket.socket) -> None:
    held = Held(near)
    for _ in range(10):
        held.connection.data_received(b"")
        assert not held.is_closed_after(IDLE_MS_MAX - 1)
    assert held.is_closed_after(2), "it says nothing any more"


def test_one_line_for_many_refusals(caplog: pytest.LogCaptureFixture) -> None:
    clock = StandingClock()
    limits = ConnectionQuotas(Limits(total_max=3, per_address_max=2), clock)
    assert [limits.admit("L", "a") for _ in range(3)] == [True, True, False]
    assert [limits.admit("L", each) for each in "bbc"] == [True, False, False]
    assert len(caplog.records) == 1
    limits.release("L", "a")
    assert limits.total == 2
    assert limits.admit("L", "c")
    clock.now_ms = 10_000
    assert not limits.admit("L", "d")
    assert "client=d listener=L others=2 open=3 total_max=3" in caplog.records[1].getMessage()


def test_clients_cannot_take_the_places_of_brokers() -> None:
    limits = Limits(
        total_max=2, per_address_max=100, protected_listener="INTERNAL", protected_count=3
    )
    quotas = ConnectionQuotas(limits, StandingClock())
    assert [quotas.admit("PUBLIC", "a") for _ in range(3)] == [True, True, False]
    assert [quotas.admit("INTERNAL", "b") for _ in range(4)] == [True, True, True, False]
    quotas.release("INTERNAL", "b")
    # As in Kafka, all connections count for those that are not protected.
    assert not quotas.admit("PUBLIC", "a")
    assert quotas.admit("INTERNAL", "b")


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    limits = Limits(total_max=10, per_address_max=10, of_listeners={"SMALL": 1})
    quotas = ConnectionQuotas(limits, StandingClock())
    assert [quotas.admit("SMALL", "a") for _ in range(2)] == [True, False]
    assert quotas.admit("LARGE", "a")
    quotas.release("SMALL", "a")
    assert quotas.admit("SMALL", "a")


def test_an_address_may_have_a_limit_of_its_own() -> None:
    limits = Limits(total_max=10, per_address_max=0, overrides={"127.0.0.7": 2, "127.0.0.1": 1})
    quotas = ConnectionQuotas(limits, StandingClock())
    assert [quotas.admit("L", "127.0.0.7") for _ in range(2)] == [True, True]
    assert not quotas.admit("L", "::ffff:127.0.0.7"), "as a listener on all interfaces sees it"
    assert [quotas.admit("L", "::ffff:127.0.0.1") for _ in range(2)] == [True, False]
    assert not quotas.admit("L", "127.0.0.8")
    quotas.release("L", "::ffff:127.0.0.7")
    assert quotas.admit("L", "127.0.0.7")


def test_no_other_address_is_shut_out(kvorum_cluster_factory: StartCluster) -> None:
    cluster = kvorum_cluster_factory(
        overrides={
            "max.connections.per.ip": "0",
            "max.connections.per.ip.overrides": "127.0.0.1:2147483647",
        }
    )
    with RawClient(cluster.bootstrap_servers) as client:
        assert ask(client)
