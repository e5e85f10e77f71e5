"""A leader that a test drives."""

import pytest
from tests.unit.raft.driven_leader import DrivenLeader


@pytest.fixture
def leader() -> DrivenLeader:
    """The leader of three voters."""
    return DrivenLeader()
