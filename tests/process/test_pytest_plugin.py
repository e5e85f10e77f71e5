"""Runs of pytest as users start them, with the fixtures of an installed kvorum."""

from pathlib import Path

from tests.support.node_process import run_python
from tests.support.waiting import PATIENCE_S

FAILS_IN_A_FAULT = """
def test_parted(kvorum_cluster_factory):
    cluster = kvorum_cluster_factory(controllers=3, brokers=1)
    cluster.partition({1}, {2}, {3}, {101})
    assert cluster is None

def test_killed(kvorum_cluster_factory):
    cluster = kvorum_cluster_factory(controllers=1, brokers=2)
    cluster.kill(1)
    assert cluster is None
"""


def run_tests(folder: Path, text: str) -> str:
    """Run a file of tests in a process of its own and return what pytest prints."""
    file = folder / "test_of_a_user.py"
    file.write_text(text)
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", str(folder))
    return run_python(
        "-m", "pytest", *options, str(file), folder=folder, timeout_s=PATIENCE_S
    ).stdout


def test_a_test_that_fails_inside_of_a_fault_ends(tmp_path: Path) -> None:
    assert "2 failed" in run_tests(tmp_path, FAILS_IN_A_FAULT).splitlines()[-1]
