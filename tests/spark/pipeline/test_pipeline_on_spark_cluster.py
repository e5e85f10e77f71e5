"""``kvorum pipeline`` on a standalone Spark cluster whose machines have no kvorum."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyspark
import pytest
from benchmarks.fleet.cluster_log import write_cluster
from tests.spark.object_store import object_store
from tests.spark.pipeline.runs import content, run_here
from tests.support.kafka.fetch_jars import NotToBeHadError, find_java
from tests.support.kafka.java import FAST_START
from tests.support.node import ATTEMPTS
from tests.support.node_process import NodeProcess
from tests.support.waiting import PATIENCE_S

from kvorum.spark.pipeline.delta_log import LOG

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
                *("--work-dir", str(self.work_folder(number))),
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
            # What a .pth file names, as this project's source roots, is left out with it.
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


pytestmark = [
    # Clients of object stores leave sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# Has no type hints.
fsspec: Any = import_module("fsspec")

WORKERS: Final = 2
CLUSTERS: Final = 3
RECORDS: Final = 300
MAIN: Final = "import sys\nfrom kvorum.cli import main\nsys.exit(main())\n"


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    try:
        find_java()
    except NotToBeHadError as error:
        pytest.skip(str(error))
    with SparkCluster(tmp_path_factory.mktemp("spark"), workers=WORKERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all packages that kvorum needs, and without kvorum."""
    python = python_without_kvorum(tmp_path_factory.mktemp("python"))
    code = "import pyspark, pyarrow\nimport kvorum.spark"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'kvorum'"
    return python


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    for seed in range(CLUSTERS):
        write_cluster(folder / str(seed), seed, records=RECORDS, partitions=30)
    return folder


@pytest.fixture(scope="module")
def expected(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The rows of a run without Spark."""
    output = tmp_path_factory.mktemp("expected") / "tables"
    run_here(fleet, output)
    return content(output)


@pytest.mark.slow
def test_executors_get_the_code_of_the_driver(
    spark_cluster: SparkCluster,
    bare_python: Path,
    fleet: Path,
    expected: dict[str, list[str]],
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "kvorum.cli", "pipeline", "--master", spark_cluster.url]
    options = ["--driver-host", "127.0.0.1", "--input", str(fleet)]
    done = run_driver(
        [*command, *options, "--output", str(tmp_path / "tables")],
        python=bare_python,
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert f" of {CLUSTERS} clusters (0 without news)" in done.stdout
    assert content(tmp_path / "tables") == expected
    # Every worker had an executor, and each of these got the archive.
    for number in range(WORKERS):
        assert list(spark_cluster.work_folder(number).glob("app-*/*/kvorum.zip")), number


@pytest.mark.slow
def test_a_driver_from_an_archive_writes_into_an_object_store(
    spark_cluster: SparkCluster,
    bare_python: Path,
    fleet: Path,
    expected: dict[str, list[str]],
    tmp_path: Path,
) -> None:
    archive, main = tmp_path / "kvorum.zip", tmp_path / "main.py"
    packing = [sys.executable, "-m", "kvorum.spark.own_code", str(archive)]
    subprocess.run(packing, check=True, timeout=PATIENCE_S)
    main.write_text(MAIN, encoding="utf-8")
    with object_store() as options:
        system = fsspec.filesystem("s3", **options)
        system.mkdir("warehouse")
        settings = [
            f"--fs={name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in options.items()
        ]
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", spark_cluster.url]
        done = run_driver(
            [
                *submit,
                *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"),
                *("--py-files", str(archive), str(main), "pipeline"),
                *("--format", "delta", *settings),
                *("--input", str(fleet), "--output", "s3://warehouse/kafka"),
            ],
            python=bare_python,
            folder=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        system.get("s3://warehouse/kafka/", str(tmp_path / "got"), recursive=True)
    assert content(tmp_path / "got") == expected
    assert [path.name for path in (tmp_path / "got" / "records" / LOG).iterdir()] == [
        f"{0:020}.json"
    ]
