"""A place to make replicas in, cleared away after each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.node.raft.cluster import Lab


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    """A lab below a temporary folder."""
    made = Lab(tmp_path)
    yield made
    await made.close()
