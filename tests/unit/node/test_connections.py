"""Many connections, silent ones, and ones too many."""

import contextlib
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.node.raw_client import RawClient

from kvorum.node.errors import NodeStartError
from kvorum.node.serving.connection_quotas import (
    RESERVED_DESCRIPTORS,
    ConnectionQuotas,
    Limits,
    raise_descriptor_limit,
    usable_limits,
)
from kvorum.testing import Cluster
from kvorum.wire.headers import encode_request_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

IDLE_CONNECTIONS = 10_000
SOFTWARE = ApiVersionsRequest("test", "1")
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
    usable = usable_limits(total_max=10**9, per_address_max=1).total_max
    # Both ends of each connection are in this process, beside all that earlier tests left open.
    count = min(IDLE_CONNECTIONS, (usable - open_descriptors()) // 2)
    host, _, port = cluster.bootstrap_servers.partition(":")
    with contextlib.ExitStack() as idle:
        for _ in range(count - 100):
            idle.enter_context(socket.create_connection((host, int(port)), timeout=10))
        with RawClient(cluster.bootstrap_servers) as client:
            started = time.monotonic()
            assert ask(client)
            assert time.monotonic() - started < 5


def test_connections_too_many_are_refused_and_others_served(
    kvorum_cluster_factory: StartCluster,
) -> None:
    # The broker itself has two connections to the controller, which count as well.
    cluster = kvorum_cluster_factory(overrides={"max.connections": "12"})
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(RawClient(cluster.bootstrap_servers)) for _ in range(20)]
        alive: list[RawClient] = []
        for client in clients:
            with contextlib.suppress(AssertionError, ConnectionError):
                client.ask(SOFTWARE, ApiVersionsResponse, 3)
                alive.append(client)
        assert 5 <= len(alive) <= 10
        assert all(ask(client) for client in alive)
    deadline = time.monotonic() + 10
    while True:
        with (
            contextlib.suppress(AssertionError, ConnectionError),
            RawClient(cluster.bootstrap_servers) as client,
        ):
            assert ask(client)
            return
        assert time.monotonic() < deadline


def test_silent_connections_are_closed(kvorum_cluster_factory: StartCluster) -> None:
    cluster = kvorum_cluster_factory(overrides={"connections.max.idle.ms": "300"})
    with RawClient(cluster.bootstrap_servers) as silent:
        assert silent.is_closed()
    with RawClient(cluster.bootstrap_servers) as talking:
        for _ in range(10):
            assert ask(talking)
            time.sleep(0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell what a client has taken")
@pytest.mark.parametrize("is_deaf", [True, False])
def test_a_client_that_takes_nothing_is_closed_and_a_slow_one_is_not(
    kvorum_cluster_factory: StartCluster, is_deaf: bool
) -> None:
    cluster = kvorum_cluster_factory(overrides={"connections.max.idle.ms": "600"})
    host, _, port = cluster.bootstrap_servers.partition(":")
    request = ApiVersionsRequest("slow", "1")
    frame = with_size(encode_request_frame(request, version=4, correlation_id=1, client_id="slow"))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        client.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            while True:
                client.send(frame * 2000)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if not is_deaf:
                client.recv(2000)
            time.sleep(0.05)
        assert _is_over(client) == is_deaf


def _is_over(client: socket.socket) -> bool:
    """Return whether the other side has closed, whatever there is to be read before."""
    watch = select.poll()
    watch.register(client, select.POLLRDHUP)
    return bool(watch.poll(0))


class Hands:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return int(self.now_ms)


def test_one_line_for_many_refusals(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hands()
    limits = ConnectionQuotas(Limits(total_max=3, per_address_max=2), clock)
    assert [limits.admit("a"), limits.admit("a"), limits.admit("a")] == [True, True, False]
    assert [limits.admit("b"), limits.admit("b"), limits.admit("c")] == [True, False, False]
    assert len(caplog.records) == 1
    limits.release("a")
    assert limits.total == 2
    assert limits.admit("c")
    clock.now_ms = 10_000
    assert not limits.admit("d")
    assert "client=d others=2 open=3 total_max=3" in caplog.records[1].getMessage()


def test_an_address_may_have_a_limit_of_its_own() -> None:
    limits = usable_limits(
        total_max=10, per_address_max=0, overrides={"127.0.0.7": 2, "localhost": 1}
    )
    quotas = ConnectionQuotas(limits, Hands())
    assert [quotas.admit("127.0.0.7") for _ in range(3)] == [True, True, False]
    assert [quotas.admit("127.0.0.1") for _ in range(2)] == [True, False]
    assert not quotas.admit("127.0.0.8")
    with pytest.raises(NodeStartError, match=r"nowhere\.invalid"):
        usable_limits(total_max=10, per_address_max=0, overrides={"nowhere.invalid": 1})


def test_nobody_else_is_shut_out(kvorum_cluster_factory: StartCluster) -> None:
    cluster = kvorum_cluster_factory(
        overrides={
            "max.connections.per.ip": "0",
            "max.connections.per.ip.overrides": "127.0.0.1:2147483647",
        }
    )
    with RawClient(cluster.bootstrap_servers) as client:
        assert ask(client)


def test_the_limit_leaves_descriptors_for_the_rest() -> None:
    raise_descriptor_limit()
    found = usable_limits(total_max=2**31 - 1, per_address_max=5)
    assert found.total_max >= RESERVED_DESCRIPTORS
    assert usable_limits(total_max=7, per_address_max=5) == Limits(7, 5)
