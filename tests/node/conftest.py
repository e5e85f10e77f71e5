"""One node that all tests of this folder may ask, as long as they leave it alive."""

from collections.abc import Iterator

import pytest
from tests.node.embedded_cluster import FRAME_BYTES_MAX
from tests.support.raw_client import RawClient

from kvorum.testing import Cluster


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    """A running combined node."""
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
