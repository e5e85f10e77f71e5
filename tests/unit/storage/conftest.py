"""A file system in memory."""

import pytest
from tests.support.faulty_files import FaultyFiles


@pytest.fixture
def files() -> FaultyFiles:
    """Without any file, and with a disk that is well."""
    return FaultyFiles()
