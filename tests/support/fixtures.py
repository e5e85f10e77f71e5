"""The partners that tests share (Kafka's jars, Java, tools, nodes), and a small file system.

Each partner lives as long as the session of a test process. Use topics and groups of your own on
them.
"""

import gc
import logging
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, NotToBeHadError, find_java
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node

JarsOf = Callable[[str], Path]
Report = Callable[[str], None]
REFUSED_CONNECTION: Final = "laddr=('0.0.0.0', "
"""The address in the text of a socket whose connection was refused."""
_MEASURED = pytest.StashKey[list[str]]()
DISK_BYTES = 1_000_000


def _jars_or_skip(release: str) -> Path:
    jars = JARS_ROOT / release
    if not jars.is_dir():
        pytest.skip(f"no jars of Kafka {release} in {JARS_ROOT.name}/ ('make setup' fetches them)")
    return jars


@pytest.fixture(scope="session")
def kafka_jars() -> JarsOf:
    """Return a function from a release to the folder of its jars; it skips when there is none."""
    return _jars_or_skip


@pytest.fixture(scope="session")
def java() -> Java:
    jars = _jars_or_skip(REFERENCE_RELEASE)
    try:
        return Java(find_java(), jars)
    except NotToBeHadError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka_tools(java: Java) -> Iterator[ToolRunner]:
    """Kafka's tools, all run in one Java process."""
    with ToolRunner(java) as runner:
        yield runner


@pytest.fixture(scope="session")
def real_kafka(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("real-kafka"), java=java).format(tools=kafka_tools) as node:
        yield node


@pytest.fixture(scope="session")
def kvorum_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("kvorum-node")).format() as node:
        yield node


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    """Return a function that takes a line about something measured."""
    return pytestconfig.stash.setdefault(_MEASURED, list[str]()).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what was measured, also where all went well."""
    for line in config.stash.get(_MEASURED, list[str]()):
        terminalreporter.write_line(f"MEASURED {line}")


@pytest.fixture(scope="module", autouse=True)
def _forgotten_sockets(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect sockets that a module's tests leave open here, and not beneath a later test.

    Clients and Spark leave some open: kafka-python one for each connection that is refused, which
    is collected some modules later. What others leave is listed in pytest's summary.
    """
    yield
    folder = request.path.relative_to(request.config.rootpath / "tests").parts[0]
    if folder not in {"interop", "spark", "node", "process"}:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for one in caught if folder in {"node", "process"} else ():
            if REFUSED_CONNECTION in str(one.message):
                continue
            warnings.warn(f"left by {request.path.name}: {one.message}", one.category, stacklevel=1)


@pytest.fixture(scope="module", autouse=True)
def _log_level_as_before() -> Iterator[None]:
    """Give later tests the level of the log that a command of a module's tests has set."""
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def mount(target: Path, *options: str) -> None:
    """Mount, or skip the test where that is not allowed."""
    if shutil.which("mount") is None:
        pytest.skip("this machine has no mount command")
    done = subprocess.run(
        ["mount", *options, str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root on Linux")
    target = tmp_path / "disk"
    target.mkdir()
    mount(target, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs")
    yield target
    subprocess.run(["umount", "--lazy", str(target)], check=True)
