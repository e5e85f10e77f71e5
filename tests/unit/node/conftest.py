"""A broker that coordinates groups."""

import pytest_asyncio
from tests.unit.node.coordinated_groups import Coordinated


@pytest_asyncio.fixture
async def node() -> Coordinated:
    """A broker that leads no partition yet."""
    return Coordinated()
