"""Folders of clusters that are never stopped: of a killed process, or forgotten by a program."""

import os
import sys
import tempfile
from pathlib import Path

import pytest
from tests.support.node_process import NodeProcess, run_python
from tests.support.waiting import PATIENCE_S

from kvorum.testing import Cluster

HOLDS_A_CLUSTER = """
import signal
from kvorum.testing import Cluster
with Cluster(brokers=0) as cluster:
    print("folder:", cluster.folder, flush=True)
    signal.pause()
"""

FORGETS_A_CLUSTER = """
import gc
from kvorum.testing import Cluster

def folder_of_a_cluster():
    cluster = Cluster()
    cluster.start()
    return cluster.folder

folder = folder_of_a_cluster()
gc.collect()
print(sorted(path.name for path in folder.iterdir()))
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


def test_the_nodes_of_a_forgotten_cluster_keep_their_folder_until_the_process_ends(
    tmp_path: Path,
) -> None:
    """It was removed with the cluster's object, and they took it for a failed disk."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = run_python("-c", FORGETS_A_CLUSTER, environment=environment, timeout_s=PATIENCE_S)
    assert "cluster.properties" in done.stdout, done.stderr
    assert not list(tmp_path.glob("kvorum-test-*"))
