"""A broker that coordinates groups."""

import pytest
from tests.unit.node.coordinated_groups import Coordinated


@pytest.fixture
async def idle() -> Coordinated:
    """A broker that leads no partition yet."""
    return Coordinated()


@pytest.fixture
async def node(idle: Coordinated) -> Coordinated:
    """A broker that leads its partition in epoch 0."""
    await idle.lead()
    return idle
