"""A controller and a broker in processes of their own, ours and real Kafka's in every mix."""

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop.clients.driver import PartitionView, TopicWish
from tests.interop.clients.kafka_python import KafkaPythonDriver
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kvorum_node import listens, run_kvorum

pytestmark = pytest.mark.interop

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30
METADATA_LAG_MAX_S = 10
# How a Java process ends that was asked to with a signal.
EXIT_CODES = {"kvorum": 0, "kafka": 143}


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
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (folder / f"{role}.properties").write_text(text, encoding="utf-8")


def format_nodes(folder: Path) -> None:
    """Format the data of both."""
    identity = ["--cluster-id", run_kvorum("storage", "random-uuid").strip()]
    for role, quorum in (("controller", "--standalone"), ("broker", "--no-initial-controllers")):
        properties = str(folder / f"{role}.properties")
        run_kvorum("storage", "format", *identity, "--config", properties, quorum)


@contextmanager
def process(java: Java, kind: str, properties: Path) -> Generator[None, None, None]:
    """Run a node; it has to stop in order when it is asked to."""
    command = [sys.executable, "-m", "kvorum.cli", "server", str(properties)]
    if kind == "kafka":
        command = java.command("kafka.Kafka", str(properties), heap_mb=384, log_level="INFO")
    log = properties.with_suffix(".log")
    with log.open("wb") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield
        running.terminate()
        assert running.wait(STOP_TIMEOUT_S) == EXIT_CODES[kind], log.read_text()
    finally:
        running.kill()
        running.wait()


def eventually(check: Callable[[], bool], limit_s: float, what: str) -> None:
    """Return once `check` says so."""
    deadline = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < deadline, f"still not so: {what}"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("controller", "broker"), [("kvorum", "kvorum"), ("kvorum", "kafka"), ("kafka", "kvorum")]
)
def test_a_broker_serves_what_its_controller_decides(
    tmp_path: Path, java: Java, controller: str, broker: str
) -> None:
    broker_port, controller_port = free_ports(2)
    addresses = Addresses(f"127.0.0.1:{broker_port}", f"127.0.0.1:{controller_port}")
    write_settings(tmp_path, addresses)
    format_nodes(tmp_path)
    with (
        process(java, controller, tmp_path / "controller.properties"),
        process(java, broker, tmp_path / "broker.properties"),
    ):
        eventually(lambda: listens(addresses.broker), START_TIMEOUT_S, "the broker listens")
        with KafkaPythonDriver(addresses.broker) as driver:
            unfenced = {2: addresses.broker}
            eventually(
                lambda: driver.describe_cluster().brokers == unfenced,
                START_TIMEOUT_S,
                "the broker is unfenced",
            )
            _live_through(driver)


def _live_through(driver: KafkaPythonDriver) -> None:
    made = driver.create_topics([TopicWish("mixed", 2), TopicWish("mixed-wide", 1, 2)])
    assert {name: outcome.code for name, outcome in made.items()} == {"mixed": 0, "mixed-wide": 38}
    only_replica = PartitionView(leader=2, replicas=(2,), isr=(2,))
    assert driver.create_partitions("mixed", 3).code == 0
    grown = dict.fromkeys(range(3), only_replica)
    eventually(
        lambda: driver.describe_topic("mixed") == grown, METADATA_LAG_MAX_S, "three partitions"
    )
    assert driver.set_topic_config("mixed", {"retention.ms": "99000"}).code == 0
    eventually(
        lambda: driver.topic_config("mixed")["retention.ms"] == "99000",
        METADATA_LAG_MAX_S,
        "the value is read",
    )
    assert driver.delete_topic("mixed").code == 0
    eventually(lambda: driver.topics() == set(), METADATA_LAG_MAX_S, "the topic is gone")
