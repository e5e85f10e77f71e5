"""Applications that copy records in transactions, on our brokers; all of them are killed.

An application of each client reads as a member of a group, and commits what it has copied and the
group's offset together. It is killed within a transaction, and each broker is; as whatever a user
runs his with, the test starts one again that has ended by itself.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.interop.clients.franz_go import NEEDS_GO, compiled_program
from tests.interop.clients.kafkajs import NEEDS_NODE, KafkajsPrograms
from tests.interop.copied_values import COPIES, SOURCE, CopiedValues, copying_brokers
from tests.interop.transaction_version import set_transaction_version
from tests.support.kafka.java import Java
from tests.support.node_process import NodeProcess

NAME: Final = "copying"
"""The name of the group, and of the transactions."""
HOLD_MS: Final = "2000"
"""The time for which a transaction is held open: it is seen meanwhile, and a kill strikes."""
ENDLESS: Final = str(2**31 - 1)
KILLS_MAX: Final = 5


@pytest.fixture
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with copying_brokers(run_brokers) as cluster:
        yield cluster


def command_of(client: str, servers: str, java: Java, folder: Path) -> list[str]:
    """Return the command line of an application that uses this client."""
    arguments = (servers, NAME, SOURCE, COPIES, HOLD_MS)
    match client:
        case "java":
            places = (servers, NAME, NAME, SOURCE, COPIES)
            return java.program("ExactlyOnceCopy", *places, ENDLESS, HOLD_MS)
        case "franz-go":
            return [str(compiled_program("copier", folder)), *arguments]
        case "kafkajs":
            return KafkajsPrograms(folder / client).command("copier", *arguments)
        case _:
            module = f"tests.interop.copiers.by_{client.replace('-', '_')}"
            return [sys.executable, "-m", module, *arguments]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("client", "version"),
    [
        ("java", 2),
        ("java", 1),
        ("confluent-kafka", 2),
        ("kafka-python", 2),
        ("aiokafka", 2),
        pytest.param("franz-go", 2, marks=NEEDS_GO),
        pytest.param("kafkajs", 2, marks=NEEDS_NODE),
    ],
)
def test_each_value_is_copied_once_while_all_are_killed(
    cluster: BrokerCluster, java: Java, tmp_path: Path, client: str, version: int
) -> None:
    set_transaction_version(cluster, version)
    command = command_of(client, cluster.servers, java, tmp_path)
    application = NodeProcess(command, tmp_path / "copier.log")

    def start_what_has_ended() -> None:
        if not application.is_running:
            application.wait()
            application.launch()

    values = CopiedValues(cluster.servers, start_what_has_ended)
    with ExitStack() as stack:
        stack.push(application)
        application.launch()
        values.begin()
        values.end()
        for _ in range(KILLS_MAX):
            values.begin()
            application.kill()
            application.launch()
            values.end()
            if values.count_of_aborted() > 0:
                break

        # Each broker leads and coordinates something.
        for broker in cluster.brokers.values():
            values.begin()
            broker.kill()
            values.end()
            broker.start()
    assert values.copies() == values.written
    assert values.count_of_aborted() > 0
