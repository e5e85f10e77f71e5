"""Folders of clusters whose process was killed: the next one of any process removes them."""

import os
import sys
import tempfile
from pathlib import Path

import pytest
from tests.support.node_process import NodeProcess

from kvorum.testing import Cluster

HOLDS_A_CLUSTER = """
import signal
from kvorum.testing import Cluster
with Cluster(brokers=0) as cluster:
    print("folder:", cluster.folder, flush=True)
    signal.pause()
"""


def holder(folder: Path) -> NodeProcess:
    """Return a process, not started, that holds a cluster with its data below a folder."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-c", HOLDS_A_CLUSTER]
    return NodeProcess(command, ready="folder:", environment=environment)


def folder_of(process: NodeProcess) -> Path:
    return Path(process.wait_for_line("folder:").partition(": ")[2])


def test_the_next_cluster_removes_what_a_killed_process_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "kvorum-test-without-a-lock").mkdir()
    with holder(tmp_path) as killed, holder(tmp_path) as running, Cluster(brokers=0) as first:
        left = folder_of(killed)
        killed.terminate()
        assert left.is_dir()
        with Cluster(brokers=0) as second:
            assert set(tmp_path.iterdir()) == {
                tmp_path / "kvorum-test-without-a-lock",
                folder_of(running),
                first.folder,
                second.folder,
            }


def test_the_next_kvorum_dev_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "kvorum.cli", "dev", "--controllers", "1", "--port", "0"]
    processes = [NodeProcess(command, ready="Ctrl-C", environment=environment) for _ in range(2)]
    killed, next_one = processes
    with killed:
        (left,) = tmp_path.glob("kvorum-dev-*")
    assert left.is_dir()
    with next_one:
        (used,) = tmp_path.glob("kvorum-dev-*")
        assert used != left
        next_one.terminate()
    assert list(tmp_path.glob("kvorum-dev-*")) == []
