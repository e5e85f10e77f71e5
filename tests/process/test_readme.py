"""The snippets of README, pasted and run as they stand but for their ports and one path."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.support.golden_data import METADATA_NODES
from tests.support.node_process import RUNS, run_python
from tests.support.page_blocks import page_block, typed
from tests.support.pasted_shell import pasted, run_pasted, shell_environment
from tests.support.ports import free_ports
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S

from kvorum.testing import Cluster

BROKER: Final = "localhost:9092"
CONTROLLER: Final = "localhost:9093"
CONTROLLERS: Final = "localhost:1909"
"""The addresses of three controllers, without the last digit of their ports: 1, 2 and 3."""
SPARK_PATIENCE_S: Final = 4 * PATIENCE_S
"""A session of Spark takes half a minute to start on a busy machine."""
METADATA_LOG: Final = "/var/kafka/__cluster_metadata-0"
INSTALLS_ONLY: Final = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_QUIET": "1"}
"""Nothing is fetched: the dependencies are there. What "false" switches off is the isolation."""


def ports_of_three() -> str:
    """Return the beginning of three free ports that end in 1, 2 and 3."""
    free = set(free_ports(30))
    return next(str(one // 10) for one in free if one % 10 == 1 and {one + 1, one + 2} <= free)


def test_a_test_of_a_user(tmp_path: Path) -> None:
    file = tmp_path / "test_orders.py"
    file.write_text(page_block("README.md", "python", "def test_"))
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    done = run_python("-m", "pytest", *options, str(file), folder=tmp_path, timeout_s=PATIENCE_S)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_first_look(tmp_path: Path) -> None:
    """The second snippet goes on with the names of the first."""
    creates = page_block("README.md", "python", "admin.create_topics(")
    reads = page_block("README.md", "python", "consumer.poll(")
    program = tmp_path / "first_look.py"
    with Cluster() as cluster:
        program.write_text((creates + reads).replace(BROKER, cluster.bootstrap_servers))
        done = run_python(str(program), timeout_s=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "b'two apples'\ndict_keys([0, 1, 2])\n"


@pytest.mark.parametrize(
    "snippet",
    [
        page_block("README.md", "python", "with Cluster(controllers=3"),
        page_block("README.md", "python", "with Cluster(security="),
        page_block("README.md", "python", "FetchRequest("),
    ],
    ids=["a cluster", "a secured cluster", "the protocol alone"],
)
def test_a_snippet_that_needs_nothing(snippet: str) -> None:
    done = run_python("-c", snippet, timeout_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
def test_rows_of_a_metadata_log(golden_sets: Path) -> None:
    snippet = page_block("README.md", "python", "SparkSession")
    log = golden_sets / METADATA_NODES[0] / "__cluster_metadata-0"
    # Spark finds the Python of its workers by the path.
    done = run_python(
        "-c",
        snippet.replace(METADATA_LOG, str(log)),
        environment=shell_environment(),
        timeout_s=SPARK_PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "only showing top 20 rows" in done.stdout


def test_a_node_that_stays(tmp_path: Path) -> None:
    broker, controller = free_ports(2)
    snippet = page_block("README.md", "sh", "node.id=1\n")
    snippet = snippet.replace(BROKER, f"localhost:{broker}")
    snippet = snippet.replace(CONTROLLER, f"localhost:{controller}")
    with pasted(snippet, tmp_path / "node") as shell:
        shell.wait_until_printed(RUNS)
    assert '"name":"metadata.version"' in shell.printed


def test_a_quorum_of_three_and_a_broker(tmp_path: Path) -> None:
    (broker,) = free_ports(1)
    snippet = page_block("README.md", "sh", "for n in 1 2 3")
    snippet = snippet.replace(BROKER, f"localhost:{broker}")
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
    # The pages' commands are typed beside a clone, and the last one in it.
    ways = [(tmp_path, line) for line in page_block("README.md", "sh", "pip install").splitlines()]
    ways.append((clone, typed(page_block("docs/wire.md", "console", "pip install"))))
    for number, (folder, line) in enumerate(ways):
        target = tmp_path / f"installed-{number}"
        settings = {**INSTALLS_ONLY, "PIP_TARGET": str(target), "ADDRESS": f"file://{clone}"}
        run_pasted(line, folder, settings)
        assert (target / "kvorum" / "testing" / "pytest_plugin.py").exists(), line
        shutil.rmtree(target)
