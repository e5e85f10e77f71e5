"""One node that all tests may ask, as long as they leave it alive, and a lab of replicas."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.node.embedded_cluster import FRAME_BYTES_MAX
from tests.node.raft.cluster import Lab
from tests.support.raw_client import RawClient

from kvorum.testing import Cluster


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    """A running combined node that all tests may ask."""
    with Cluster(overrides={"socket.request.max.bytes": str(FRAME_BYTES_MAX)}) as cluster:
        yield cluster


@pytest.fixture
def broker(node: Cluster) -> Iterator[RawClient]:
    """A connection to the broker's listener."""
    with RawClient(node.bootstrap_servers) as client:
        yield client


@pytest.fixture
def controller(node: Cluster) -> Iterator[RawClient]:
    """A connection to the controller's listener."""
    with RawClient(node.controller_servers) as client:
        yield client


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    """A place to make replicas in, cleared away after each test."""
    made = Lab(tmp_path)
    yield made
    await made.close()
