"""The number of connections that a process has."""

import resource
from collections.abc import Iterator

import pytest

WANTED = 10_000


DESCRIPTORS_FOR_THE_REST = 300


@pytest.fixture
def connection_count() -> Iterator[int]:
    """As many connections as this process may have, up to the wanted ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(WANTED, hard - DESCRIPTORS_FOR_THE_REST)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
