"""Nodes side by side, and the warnings that tests with third-party clients do not mind."""

import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.interop.clients.login_program import LOGIN_CLIENTS, LoginProgram
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import LEVELS_OF_OURS, STANDALONE, BothNodes, Kind, Node
from tests.support.quorum.quorum import MakeQuorum, Quorum, quorum_of


@pytest.fixture(scope="module")
def both_nodes(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> BothNodes:
    """Return a function whose context is a real node and one of ours, running side by side."""

    @contextmanager
    def running(settings: Mapping[str, str] = MappingProxyType({})) -> Generator[tuple[Node, Node]]:
        folder = tmp_path_factory.mktemp("both")
        with (
            Node(folder / "real", settings, java=java).format(
                (*STANDALONE, *LEVELS_OF_OURS), tools=kafka_tools
            ) as real,
            Node(folder / "ours", settings).format() as ours,
        ):
            yield real, ours

    return running


@pytest.fixture(scope="module")
def run_brokers(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> RunBrokers:
    """Return a function whose context is running brokers; it takes BrokerCluster's options."""

    def run(kind: Kind = "kvorum", **options: Any) -> AbstractContextManager[BrokerCluster]:
        folder = tmp_path_factory.mktemp("brokers")
        return BrokerCluster(kind, folder, java=java, tools=kafka_tools, **options).running()

    return run


@pytest.fixture(scope="module")
def make_quorum(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> MakeQuorum:
    """Return a function that makes a quorum in a folder of its own, with quorum_of's options."""

    def make(kind: Kind, *options: Any) -> Quorum:
        folder = tmp_path_factory.mktemp("quorum")
        return quorum_of(kind, folder, *options, java=java, tools=kafka_tools)

    return make


@pytest.fixture(scope="module", params=LOGIN_CLIENTS)
def login_program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> LoginProgram:
    """A program of each client in another language that can be run here."""
    return LoginProgram(request.param, tmp_path_factory.mktemp("login"))


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the clients use what their own dependencies call outdated: it is not ours to mend."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))
