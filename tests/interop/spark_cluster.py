"""A standalone Spark cluster on loopback: a master and workers, each a Java process of its own."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark
from tests.interop.kafka.fetch_jars import find_java
from tests.interop.kafka.java import FAST_START

START_TIMEOUT_S: Final = 90
STOP_TIMEOUT_S: Final = 30
RUN_TIMEOUT_S: Final = 300
HEAP_MB: Final = 256
LOOPBACK: Final = "127.0.0.1"
# Every port but these two is a free one that Spark takes; the log has the master's.
FREE_PORTS: Final = ("--port", "0", "--webui-port", "0")
SPARK_HOME: Final = Path(pyspark.__file__).parent
WORKER_LIMITS: Final = ("--cores", "1", "--memory", "1g")
SCALA_VERSION: Final = "2.13"


class _Daemon:
    """One Java process of the cluster, whose log is read as it comes."""

    def __init__(self, main_class: str, *arguments: str) -> None:
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
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        self.process = subprocess.Popen(
            command,
            env={
                **environment,
                "SPARK_HOME": str(SPARK_HOME),
                "SPARK_LOCAL_IP": LOOPBACK,
                # A worker looks for it in directories that a release has and pyspark lacks.
                "SPARK_SCALA_VERSION": SCALA_VERSION,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: list[str] = []
        self._said = threading.Condition()
        self._is_at_end = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._said:
                self._lines.append(line)
                self._said.notify_all()
        with self._said:
            self._is_at_end = True
            self._said.notify_all()

    def wait_for(self, pattern: str) -> str:
        """Return the first group of the first line that matches."""
        with self._said:
            self._said.wait_for(
                lambda: self._is_at_end or self._found(pattern) is not None, START_TIMEOUT_S
            )
            found = self._found(pattern)
        if found is None:
            self.stop()
            raise RuntimeError(f"no {pattern!r} in the log:\n{''.join(self._lines)}")
        return found

    def _found(self, pattern: str) -> str | None:
        for line in self._lines:
            if match := re.search(pattern, line):
                return match.group(1)
        return None

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)
        self._reader.join(STOP_TIMEOUT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()


class SparkCluster:
    """A master and its workers, one core and 1 GiB each; as a context they run."""

    def __init__(self, folder: Path, *, workers: int) -> None:
        self._folder = folder
        self._worker_count = workers
        self._daemons: list[_Daemon] = []
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
        master = _Daemon("master.Master")
        self._daemons.append(master)
        self.url = master.wait_for(r"Starting Spark master at (spark://\S+)")
        workers = [
            _Daemon(
                "worker.Worker",
                *WORKER_LIMITS,
                *("--work-dir", str(self.work_folder(number))),
                self.url,
            )
            for number in range(self._worker_count)
        ]
        self._daemons += workers
        for worker in workers:
            worker.wait_for("(Successfully registered with master)")

    def _stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.stop()
        self._daemons.clear()


def python_without_kvorum(folder: Path) -> Path:
    """Return a Python of its own that has every package of this one but kvorum."""
    environment = folder / "python"
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for entry in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for package in entry.iterdir():
            # What a .pth file names, as this project's source roots, is left out with it.
            if not package.name.lstrip("_").startswith("kvorum") and package.suffix != ".pth":
                (packages / package.name).symlink_to(package)
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(environment)]
    subprocess.run(command, check=True, timeout=START_TIMEOUT_S)
    (library,) = (environment / "lib").glob("python*/site-packages")
    (library / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    return environment / "bin" / "python"


def run_driver(
    command: Sequence[str], *, python: Path, folder: Path, timeout_s: float = RUN_TIMEOUT_S
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
