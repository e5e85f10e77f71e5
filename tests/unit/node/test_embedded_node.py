"""Addresses of embedded nodes, in the form that every client takes."""

from pathlib import Path
from typing import cast

import pytest

from kvorum.node.embedded.listeners import ClientListener
from kvorum.node.embedded.node import EmbeddedNode, Place
from kvorum.node.kafka_raft_server import KafkaRaftServer


@pytest.mark.parametrize(
    ("host", "address"),
    [("::1", "[::1]:9092"), ("127.0.0.1", "127.0.0.1:9092"), ("kafka.test", "kafka.test:9092")],
)
def test_an_address_of_ipv6_has_brackets(host: str, address: str) -> None:
    place = Place(node_id=1, folder=Path("1"), is_controller=True, is_broker=True)
    node = EmbeddedNode(
        node=cast("KafkaRaftServer", None),
        place=place,
        broker_port=9092,
        internal_port=9092,
        controller_port=9093,
        clients=ClientListener(listens_at=host, advertised=host),
    )
    assert node.bootstrap_servers == str(node.internal_address) == address
    assert node.controller_servers == "127.0.0.1:9093"
