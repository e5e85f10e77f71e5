"""Brokers with one more listener, for clients that are cut off one by one."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.broker_cluster import BrokerCluster
from tests.interop.storms.storm_command import EVERYBODY
from tests.support.node import Kind, Node
from tests.support.ports import free_ports
from tests.support.proxied_network import Network

LISTENER: Final = "MEMBERS"
PROTOCOLS: Final = f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{LISTENER}:PLAINTEXT"


@dataclass(frozen=True, slots=True)
class ProxiedCluster:
    """Brokers, and the network between them and clients that have a number as their client id."""

    cluster: BrokerCluster
    network: Network

    @property
    def servers(self) -> str:
        """The proxies' addresses, at which these clients begin; brokers advertise the same ones."""
        return ",".join(f"127.0.0.1:{port}" for port in self.network.ports.values())


@contextmanager
def proxied_cluster(
    kind: Kind, folder: Path, settings: Mapping[str, str], topic: str, partitions: int, **more: Any
) -> Generator[ProxiedCluster]:
    """Run three brokers on one controller, with more options of BrokerCluster, and a topic."""
    made = BrokerCluster(kind, folder, brokers=len(EVERYBODY), settings=settings, **more)
    with Network(EVERYBODY) as network:
        for broker in made.brokers.values():
            _add_listener(broker, network)
        with made.running() as cluster:
            words = f"--create --topic {topic} --partitions {partitions} --replication-factor 3"
            cluster.tool("kafka-topics", *words.split())
            cluster.wait_for_partitions(topic, leaders=set(EVERYBODY), isr=set(EVERYBODY))
            yield ProxiedCluster(cluster, network)


def _add_listener(broker: Node, network: Network) -> None:
    """Let clients come through the network, before the broker's first start."""
    (port,) = free_ports(1)
    plain = f"PLAINTEXT://{broker.broker}"
    broker.configure(
        {
            "listeners": f"{plain},{LISTENER}://127.0.0.1:{port}",
            "advertised.listeners": (
                f"{plain},{LISTENER}://127.0.0.1:{network.ports[broker.node_id]}"
            ),
            "listener.security.protocol.map": PROTOCOLS,
        }
    )
    network.listen(broker.node_id, port)
