"""The source files that rules look at: read and parsed once for this folder, and then forgotten."""

from pathlib import Path

import pytest
from tests.support.source_tree import source_file


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Forget them once no test of this folder follows: millions of objects slow each later test."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        source_file.cache_clear()
