"""Fixtures that every test may use: bytes and text that real Kafka produced.

`golden` is the folder with the data as it is stored, `golden_sets` the same run's unpacked
directories (``golden_sets / "dynamic-4.3.1" / "metadata" / "controller-1"``). Both are shared by
the whole session: copy before writing.
"""

import gc
import signal
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

GOLDEN = Path(__file__).parent / "golden"

pytest_plugins = ["tests.support.tiers", "tests.support.fixtures"]

# The time of an example says how busy the machine is, and nothing of what is tested.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A shell that runs tests in the background has SIGINT ignored. The commands that tests interrupt
# would inherit that, and not end.
signal.signal(signal.SIGINT, signal.default_int_handler)


@settings(max_examples=1, database=None)
@given(strategies.none())
def _use_hypothesis(_nothing: None) -> None:
    """Have its own objects made."""


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of golden data as stored; its README.md says what is what."""
    return GOLDEN


@pytest.fixture(scope="session")
def golden_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the unpacked sets, one sub-folder each."""
    target = tmp_path_factory.mktemp("golden-sets")
    with tarfile.open(GOLDEN / "sets.tar.xz") as archive:
        # Early 3.11 releases know no filters: there the attribute is simply not looked at.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(target)
    return target


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the collected tests, which stay: its passes take long."""
    # Hypothesis looks for what refers to its random numbers, and does not find it there.
    _use_hypothesis()
    gc.collect()
    gc.freeze()
