"""A cluster whose brokers replicate among themselves, and what its topics look like."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.testing import Cluster

BROKERS = (101, 102, 103)
CONTROLLER = 1
OVERRIDES = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "1000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "50",
    "auto.leader.rebalance.enable": "false",
}


def create_replicated(
    cluster: Cluster,
    name: str,
    replicas: Sequence[int],
    configs: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create a topic of one partition with these replicas."""
    with RawClient(cluster.controller_servers) as controller:
        create_topic(controller, name, replicas=replicas, configs=configs)


def address_of(cluster: Cluster, node_id: int) -> str:
    image = cluster.node(CONTROLLER).shared_server.loader.published
    (endpoint,) = image.cluster.brokers[node_id].listeners
    return f"{endpoint.host}:{endpoint.port}"


def registration(image: MetadataImage, topic: str) -> PartitionRegistration | None:
    found = image.topics.by_name(topic)
    return None if found is None else found.partitions.get(0)


def topic_id_of(cluster: Cluster, topic: str) -> bytes:
    found = cluster.node(CONTROLLER).shared_server.loader.published.topics.by_name(topic)
    assert found is not None
    return found.id


def state_of(cluster: Cluster, topic: str) -> PartitionRegistration:
    """Return the state of partition 0 as the controller has it."""
    found = registration(cluster.node(CONTROLLER).shared_server.loader.published, topic)
    assert found is not None
    return found


def wait_for_isr(cluster: Cluster, topic: str, isr: set[int]) -> PartitionRegistration:
    def look() -> PartitionRegistration | None:
        state = state_of(cluster, topic)
        return state if set(state.isr) == isr and state.leader >= 0 else None

    return wait_for(
        look,
        f"the replicas in sync of {topic} are {isr}",
        otherwise=lambda: state_of(cluster, topic),
    )


def log_bytes(folder: Path, node_id: int, topic: str) -> bytes:
    directory = folder / f"broker-{node_id}" / "data" / f"{topic}-0"
    return b"".join(file.read_bytes() for file in sorted(directory.glob("*.log")))
