"""The archives of a release, built once for the tests of a file."""

import pytest
from tests.house.release.building import Archives, build


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """The archives that `make dist` builds from this tree."""
    return build(tmp_path_factory.mktemp("dist"))
