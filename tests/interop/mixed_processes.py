"""A controller and a broker in processes of their own, each ours or real Kafka's."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka.java import Java
from tests.support.node import ORDERLY_END, Kind, process_of
from tests.support.node_process import NodeProcess, run_kvorum, write_properties


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the two processes listen."""

    broker: str
    controller: str


def write_settings(folder: Path, addresses: Addresses) -> None:
    """Write controller.properties and broker.properties."""
    common = {
        "controller.quorum.bootstrap.servers": addresses.controller,
        "controller.listener.names": "CONTROLLER",
        "auto.create.topics.enable": "false",
    }
    own = {
        "controller": {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://{addresses.controller}",
            "advertised.listeners": f"CONTROLLER://{addresses.controller}",
        },
        "broker": {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://{addresses.broker}",
            "advertised.listeners": f"PLAINTEXT://{addresses.broker}",
        },
    }
    for role, settings in own.items():
        lines = {**common, **settings, "log.dirs": str(folder / role)}
        write_properties(folder / f"{role}.properties", lines)


def format_nodes(folder: Path) -> None:
    """Format the data of both."""
    identity = ["--cluster-id", run_kvorum("storage", "random-uuid").strip()]
    for role, quorum in (("controller", "--standalone"), ("broker", "--no-initial-controllers")):
        properties = str(folder / f"{role}.properties")
        run_kvorum("storage", "format", *identity, "--config", properties, quorum)


@contextmanager
def running(java: Java, kind: Kind, properties: Path) -> Generator[NodeProcess]:
    """Run a node; it has to stop in order when it is asked to."""
    with process_of(kind, java, properties) as process:
        yield process
        ended = process.terminate()
        assert ended.exit_code == ORDERLY_END[kind], "\n".join(ended.lines)
