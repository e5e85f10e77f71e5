"""Nodes for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.node import QUICK, Node
from tests.support.node_process import NodeProcess
from tests.support.resources import connection_count

__all__ = ["connection_count"]


@pytest.fixture(scope="session", autouse=True)
def _quick_starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the processes keep their bytecode, as those of an installed kvorum do."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        environment.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture(scope="session")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A formatted node that never runs: copy it."""
    return Node(tmp_path_factory.mktemp("formatted"), QUICK).format()


@pytest.fixture
def node(formatted: Node, tmp_path: Path) -> Node:
    """A freshly formatted node of the test's own, not running."""
    return formatted.copy_to(tmp_path / "node")


@pytest.fixture
def node_on_disk(formatted: Node, tmp_path: Path, disk: Path) -> Node:
    """A freshly formatted node of the test's own with its data on a small disk, not running."""
    return formatted.copy_to(tmp_path / "node", {**QUICK, "log.dirs": str(disk / "data")})


@pytest.fixture
def running(node: Node) -> Iterator[NodeProcess]:
    with node.process as process:
        yield process


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """The node of `shared_process`; tests have to leave it alive."""
    return Node(tmp_path_factory.mktemp("shared"), QUICK).format()


@pytest.fixture(scope="session")
def shared_process(shared: Node) -> Iterator[NodeProcess]:
    """A node at addresses of its own that runs as long as a test may use it."""
    with shared.process as process:
        yield process
