"""A leader that a test drives."""

import pytest
from tests.unit.raft.core_builder import DrivenLeader


@pytest.fixture
def leader() -> DrivenLeader:
    """The leader of three voters."""
    return DrivenLeader()
