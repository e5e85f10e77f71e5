"""A quorum in which a test breaks what a property holds."""

import pytest
from tests.support.pretended_quorum import PretendedQuorum


@pytest.fixture
def quorum() -> PretendedQuorum:
    """Nodes that have done nothing yet."""
    return PretendedQuorum()


@pytest.fixture
def led(quorum: PretendedQuorum) -> PretendedQuorum:
    """Nodes that node 1 leads in epoch 1."""
    quorum.led_by(1)
    return quorum
