"""Nodes for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.combined_node import CombinedNode, format_node
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
def formatted(tmp_path_factory: pytest.TempPathFactory) -> CombinedNode:
    """A formatted node that never runs: copy it."""
    return format_node(tmp_path_factory.mktemp("formatted") / "node")


@pytest.fixture
def node(formatted: CombinedNode, tmp_path: Path) -> CombinedNode:
    """A freshly formatted node of the test's own, not running."""
    return formatted.copy_to(tmp_path / "node")


@pytest.fixture
def running(node: CombinedNode) -> Iterator[NodeProcess]:
    """The test's own node, running."""
    with node.process() as process:
        yield process


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> CombinedNode:
    """The node of `shared_process`; tests have to leave it alive."""
    return format_node(tmp_path_factory.mktemp("shared") / "node")


@pytest.fixture(scope="session")
def shared_process(shared: CombinedNode) -> Iterator[NodeProcess]:
    """A node at addresses of its own that runs as long as somebody may use it."""
    with shared.process() as process:
        yield process
