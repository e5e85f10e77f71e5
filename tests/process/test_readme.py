"""The snippets of README, pasted and run as they stand but for their ports and one path."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.support.golden_data import METADATA_NODES
from tests.support.node_process import RUNS, run_python
from tests.support.ports import free_ports
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.testing import Cluster

README: Final = (ROOT / "README.md").read_text("utf-8")
BLOCK: Final = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BROKER: Final = "localhost:9092"
CONTROLLER: Final = "localhost:9093"
CONTROLLERS: Final = "localhost:1909"
"""The addresses of three controllers, without the last digit of their ports: 1, 2 and 3."""
METADATA_LOG: Final = "/var/kafka/__cluster_metadata-0"
INSTALLS_ONLY: Final = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_QUIET": "1"}
"""Nothing is fetched: the dependencies are there. What "false" switches off is the isolation."""


def block(kind: str, words: str) -> str:
    """Return the one snippet that contains the words."""
    (found,) = [text for known, text in BLOCK.findall(README) if known == kind and words in text]
    return str(found)


def ports_of_three() -> str:
    """Return the beginning of three free ports that end in 1, 2 and 3."""
    free = set(free_ports(30))
    return next(str(one // 10) for one in free if one % 10 == 1 and {one + 1, one + 2} <= free)


def environment(added: Mapping[str, str]) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **added}


class Shell:
    """A shell that runs a snippet, and its output so far."""

    def __init__(self, output: Path) -> None:
        self._output = output

    @property
    def printed(self) -> str:
        return self._output.read_text("utf-8", errors="replace")

    def wait_until_printed(self, words: str, times: int = 1) -> None:
        wait_for(
            lambda: self.printed.count(words) >= times or None,
            f"{words!r} is printed {times} times",
            otherwise=lambda: self.printed,
        )


@contextmanager
def pasted(snippet: str, folder: Path, added: Mapping[str, str] | None = None) -> Iterator[Shell]:
    """Run a snippet in a shell, and end it with all that it has started."""
    folder.mkdir(exist_ok=True)
    output = folder / "output.txt"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            ["bash", "-e"],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment(added or {}),
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(snippet.encode())
        process.stdin.close()
        try:
            yield Shell(output)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)


def test_a_test_of_a_user(tmp_path: Path) -> None:
    file = tmp_path / "test_orders.py"
    file.write_text(block("python", "def test_"))
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    done = run_python("-m", "pytest", *options, str(file), folder=tmp_path, timeout_s=PATIENCE_S)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_first_look(tmp_path: Path) -> None:
    """The second snippet goes on with the names of the first."""
    snippets = [text for kind, text in BLOCK.findall(README) if kind == "python" and BROKER in text]
    assert len(snippets) == 2
    program = tmp_path / "first_look.py"
    with Cluster() as cluster:
        program.write_text("".join(snippets).replace(BROKER, cluster.bootstrap_servers))
        done = run_python(str(program), timeout_s=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "b'two apples'\ndict_keys([0, 1, 2])\n"


@pytest.mark.parametrize("words", ["with Cluster(", "FetchRequest("])
def test_a_snippet_that_needs_nothing(words: str) -> None:
    done = run_python("-c", block("python", words), timeout_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
def test_rows_of_a_metadata_log(golden_sets: Path) -> None:
    snippet = block("python", "SparkSession")
    log = golden_sets / METADATA_NODES[0] / "__cluster_metadata-0"
    # Spark finds the Python of its workers by the path.
    done = run_python(
        *("-c", snippet.replace(METADATA_LOG, str(log))),
        environment=environment({}),
        timeout_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "only showing top 20 rows" in done.stdout


def test_a_node_that_stays(tmp_path: Path) -> None:
    broker, controller = free_ports(2)
    snippet = block("sh", "node.id=1\n")
    snippet = snippet.replace(BROKER, f"localhost:{broker}")
    snippet = snippet.replace(CONTROLLER, f"localhost:{controller}")
    with pasted(snippet, tmp_path / "node") as shell:
        shell.wait_until_printed(RUNS)
    assert '"name":"metadata.version"' in shell.printed


def test_a_quorum_of_three_and_a_broker(tmp_path: Path) -> None:
    (broker,) = free_ports(1)
    snippet = block("sh", "for n in 1 2 3").replace(BROKER, f"localhost:{broker}")
    snippet = snippet.replace(CONTROLLERS, f"localhost:{ports_of_three()}")
    with pasted(snippet, tmp_path / "quorum") as shell:
        shell.wait_until_printed(RUNS, times=4)
        shell.wait_until_printed("Leader")
        shell.wait_until_printed("Follower", times=2)


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a clone has an address of git")
def test_each_way_to_install_it(tmp_path: Path) -> None:
    clone = tmp_path / "kvorum"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    wheel = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist", ".")
    assert run_python(*wheel, folder=clone).returncode == 0
    for number, line in enumerate(block("sh", "pip install").splitlines()):
        target = tmp_path / f"installed-{number}"
        settings = {**INSTALLS_ONLY, "PIP_TARGET": str(target), "ADDRESS": f"file://{clone}"}
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=environment(settings),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert (target / "kvorum" / "testing" / "pytest_plugin.py").exists(), line
        shutil.rmtree(target)


def test_no_snippet_is_left_out() -> None:
    tried = (
        *("def test_", "with Cluster(", "FetchRequest(", "SparkSession", BROKER),
        *("node.id=1\n", "for n in 1 2 3", "pip install"),
    )
    left = [text for _, text in BLOCK.findall(README) if not any(one in text for one in tried)]
    assert left == []
