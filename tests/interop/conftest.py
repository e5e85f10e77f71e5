"""Fixtures for the tests against real Kafka: its jars, a Java for them, its tools, its server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interop.kafka.fetch_jars import (
    JARS_ROOT,
    REFERENCE_RELEASE,
    NotToBeHadError,
    find_java,
)
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import RealKafka
from tests.interop.kafka.tools import ToolRunner
from tests.interop.kvorum_node import KvorumNode

JarsOf = Callable[[str], Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the clients use what their own dependencies call outdated: it is not ours to mend."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


def _jars_or_skip(release: str) -> Path:
    jars = JARS_ROOT / release
    if not jars.is_dir():
        pytest.skip(f"no jars of Kafka {release} in {JARS_ROOT.name}/ ('make setup' fetches them)")
    return jars


@pytest.fixture(scope="session")
def kafka_jars() -> JarsOf:
    """Return a function from a release to the folder of its jars; it skips when there is none."""
    return _jars_or_skip


@pytest.fixture(scope="session")
def java() -> Java:
    """A Java runtime with the jars of the reference release."""
    jars = _jars_or_skip(REFERENCE_RELEASE)
    try:
        return Java(find_java(), jars)
    except NotToBeHadError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka_tools(java: Java) -> Iterator[ToolRunner]:
    """Kafka's tools, all run in one Java process."""
    with ToolRunner(java) as runner:
        yield runner


@pytest.fixture(scope="session")
def real_kafka(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealKafka]:
    """A running real Kafka node, one for the whole session: name your topics for yourself."""
    folder = tmp_path_factory.mktemp("real-kafka")
    with RealKafka(java=java, tools=kafka_tools, folder=folder) as node:
        yield node


@pytest.fixture(scope="session")
def kvorum_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KvorumNode]:
    """A running kvorum node, one for the whole session: name your topics for yourself."""
    with KvorumNode(tmp_path_factory.mktemp("kvorum-node")) as node:
        yield node
