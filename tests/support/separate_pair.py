"""A controller and a broker in processes of their own, each ours or real Kafka's."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.support.kafka.java import Java
from tests.support.node import CLUSTER_ID, NO_VOTERS, Kind, Node


class Pair(NamedTuple):
    """Two formatted nodes, not running: 1 is the controller, 2 the broker."""

    controller: Node
    broker: Node


def make_pair(
    folder: Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    java: Java | None = None,
    kinds: tuple[Kind, Kind] = ("kvorum", "kvorum"),
    broker_cluster_id: str = CLUSTER_ID,
) -> Pair:
    """Format the two; `kinds` are the controller's and the broker's."""
    below, above = (java if kind == "kafka" else None for kind in kinds)
    controller = Node(
        folder / "controller", {"process.roles": "controller", **settings}, java=below
    )
    quorum = {"controller.quorum.bootstrap.servers": controller.controller}
    broker = Node(
        folder / "broker", {"process.roles": "broker", **quorum, **settings}, node_id=2, java=above
    )
    return Pair(controller.format(), broker.format(NO_VOTERS, cluster_id=broker_cluster_id))
