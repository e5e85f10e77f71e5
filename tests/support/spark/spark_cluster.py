"""A standalone Spark cluster on loopback: a master and workers, each a Java process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark
from tests.support.kafka.fetch_jars import find_java
from tests.support.kafka.java import FAST_START
from tests.support.node import ATTEMPTS
from tests.support.node_process import NodeProcess
from tests.support.waiting import PATIENCE_S

MASTER_RUNS: Final = "Starting Spark master at spark://"
WORKER_RUNS: Final = "Successfully registered with master"
HEAP_MB: Final = 256
LOOPBACK: Final = "127.0.0.1"
# Every port but these two is a free one that Spark takes; the log has the master's.
FREE_PORTS: Final = ("--port", "0", "--webui-port", "0")
SPARK_HOME: Final = Path(pyspark.__file__).parent
WORKER_LIMITS: Final = ("--cores", "1", "--memory", "1g")
SCALA_VERSION: Final = "2.13"


def _daemon(main_class: str, *arguments: str) -> NodeProcess:
    """Return one Java process of the cluster, not started."""
    command = [
        str(find_java()),
        *FAST_START,
        f"-Xmx{HEAP_MB}m",
        # The server for submissions by REST has a fixed port.
        "-Dspark.master.rest.enabled=false",
        *("-cp", f"{SPARK_HOME}/jars/*", f"org.apache.spark.deploy.{main_class}"),
        *("--host", LOOPBACK, *FREE_PORTS, *arguments),
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        # A worker looks for it in directories that a release has and pyspark lacks.
        "SPARK_SCALA_VERSION": SCALA_VERSION,
    }
    ready = MASTER_RUNS if main_class == "master.Master" else WORKER_RUNS
    return NodeProcess(command, ready=ready, attempts=ATTEMPTS, environment=environment)


class SparkCluster:
    """A master and its workers, one core and 1 GiB each; as a context they run."""

    def __init__(self, folder: Path, *, workers: int) -> None:
        self._folder = folder
        self._worker_count = workers
        self._daemons: list[NodeProcess] = []
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def work_folder(self, number: int) -> Path:
        """Return where a worker puts what its executors write and log."""
        return self._folder / f"worker-{number}"

    def _start(self) -> None:
        master = _daemon("master.Master")
        self._daemons.append(master.start())
        self.url = master.wait_for_line(MASTER_RUNS).rpartition(" ")[2]
        workers = [
            _daemon(
                "worker.Worker",
                *WORKER_LIMITS,
                "--work-dir",
                str(self.work_folder(number)),
                self.url,
            )
            for number in range(self._worker_count)
        ]
        self._daemons += workers
        for worker in workers:
            worker.launch()
        for worker in workers:
            worker.come_up()

    def _stop(self) -> None:
        for daemon in reversed(self._daemons):
            if daemon.is_launched:
                daemon.terminate()
        self._daemons.clear()


def python_without_kvorum(folder: Path) -> Path:
    """Return a Python of its own that has every package of this one but kvorum."""
    environment = folder / "python"
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for entry in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for package in entry.iterdir():
            # The folders that a .pth file names, as our source roots, are left out with it.
            if not package.name.lstrip("_").startswith("kvorum") and package.suffix != ".pth":
                (packages / package.name).symlink_to(package)
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(environment)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    (library,) = (environment / "lib").glob("python*/site-packages")
    (library / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    return environment / "bin" / "python"


def run_driver(
    command: Sequence[str], *, python: Path, folder: Path, timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a driver whose executors use `python`; so does what spark-submit starts."""
    environment: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_SCALA_VERSION": SCALA_VERSION,
        "PYSPARK_PYTHON": str(python),
    }
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip
