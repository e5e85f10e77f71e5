"""A controller and a broker in processes of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.combined_node import CLUSTER_ID, QUICK
from tests.support.node_process import NodeProcess, kvorum_server, run_kvorum, write_properties
from tests.support.ports import free_ports


@dataclass(frozen=True, slots=True)
class Pair:
    """Two formatted nodes: 1 is the controller, 2 the broker."""

    controller: NodeProcess
    broker: NodeProcess
    broker_address: str


def _settings(folder: Path, role: str, own_listener: str, controller: str) -> Mapping[str, str]:
    return {
        "process.roles": role,
        "node.id": "1" if role == "controller" else "2",
        "controller.quorum.bootstrap.servers": controller,
        "controller.listener.names": "CONTROLLER",
        "listeners": own_listener,
        "advertised.listeners": own_listener,
        "log.dirs": str(folder / role),
        "auto.create.topics.enable": "false",
        **QUICK,
    }


def make_pair(
    folder: Path,
    *,
    broker_cluster_id: str = CLUSTER_ID,
    settings: Mapping[str, str] | None = None,
) -> Pair:
    """Format the two."""
    broker, controller = (f"127.0.0.1:{port}" for port in free_ports(2))
    own = {"controller": f"CONTROLLER://{controller}", "broker": f"PLAINTEXT://{broker}"}
    identities = {
        "controller": ["--standalone", "--cluster-id", CLUSTER_ID],
        "broker": ["--no-initial-controllers", "--cluster-id", broker_cluster_id],
    }
    for role, identity in identities.items():
        properties = folder / f"{role}.properties"
        known = _settings(folder, role, own[role], controller)
        write_properties(properties, {**known, **(settings or {})})
        run_kvorum("storage", "format", "--config", str(properties), *identity)
    return Pair(
        kvorum_server(folder / "controller.properties"),
        kvorum_server(folder / "broker.properties"),
        broker,
    )
