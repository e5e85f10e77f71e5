"""Fixtures of several files: a leader, a quorum in which a test breaks something, a disk."""

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.pretended_quorum import PretendedQuorum
from tests.unit.raft.core_builder import DrivenLeader


@pytest.fixture
def leader() -> DrivenLeader:
    """The leader of three voters, driven by the test."""
    return DrivenLeader()


@pytest.fixture
def files() -> FaultyFiles:
    """A file system in memory without any file, and with a disk that is well."""
    return FaultyFiles()


@pytest.fixture
def quorum() -> PretendedQuorum:
    """Nodes that have done nothing yet, in which a test breaks what a property holds."""
    return PretendedQuorum()


@pytest.fixture
def led(quorum: PretendedQuorum) -> PretendedQuorum:
    """Nodes that node 1 leads in epoch 1."""
    quorum.led_by(1)
    return quorum
