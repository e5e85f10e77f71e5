"""The ports that embedded nodes choose for themselves."""

import socket
from pathlib import Path

import pytest

from kvorum.node.embedded import free_ports
from kvorum.node.embedded.cluster import EmbeddedCluster
from kvorum.node.embedded.node import ClusterSize
from kvorum.node.errors import NodeStartError
from kvorum.node.serving.socket_server import bind


def test_a_chosen_port_is_not_one_that_the_system_gives_to_connections(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, size=ClusterSize(controllers=1, brokers=2), broker_port=0)
    try:
        ports = [
            port
            for embedded in cluster.nodes.values()
            for port in (embedded.broker_port, embedded.controller_port)
            if port is not None
        ]
    finally:
        cluster.discard()
    assert len(ports) == 3
    assert set(ports) <= set(free_ports.LISTENING_PORTS)


def test_a_bound_port_cannot_be_bound_again_before_it_listens() -> None:
    with free_ports.bind_anywhere("PLAINTEXT") as bound:
        port = bound.getsockname()[1]
        with pytest.raises(NodeStartError, match=f"port {port} is taken"):
            bind("PLAINTEXT", free_ports.LOOPBACK, port)


def test_where_all_those_are_taken_the_system_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((free_ports.LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(free_ports, "LISTENING_PORTS", range(port, port + 1))
        monkeypatch.setattr(free_ports, "ATTEMPTS", 1)
        with free_ports.bind_anywhere("PLAINTEXT") as bound:
            assert bound.getsockname()[1] not in (0, port)
