"""A quorum in which a test breaks what a property holds."""

import pytest
from tests.support.pretended_quorum import PretendedQuorum


@pytest.fixture
def quorum() -> PretendedQuorum:
    """Nodes that have done nothing yet."""
    return PretendedQuorum()
