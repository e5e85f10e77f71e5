"""``kvorum pipeline`` on a standalone Spark cluster whose machines have no kvorum."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from benchmarks.fleet.cluster_log import write_cluster
from tests.spark.object_store import SOCKETS_LEFT_OPEN, fsspec, object_store
from tests.spark.pipeline.runs import content, run_here
from tests.support.kafka.fetch_jars import find_java
from tests.support.page_blocks import at_places, page_block
from tests.support.pasted_shell import run_pasted
from tests.support.ports import free_ports
from tests.support.spark.spark_cluster import (
    LOOPBACK,
    SparkCluster,
    python_without_kvorum,
    run_driver,
)
from tests.support.waiting import PATIENCE_S

from kvorum.spark.pipeline.delta_log import LOG

pytestmark = SOCKETS_LEFT_OPEN

WORKERS: Final = 2
CLUSTERS: Final = 3
RECORDS: Final = 300
SPARK_PATIENCE_S: Final = 5 * PATIENCE_S
"""The patience for a snippet that starts a cluster and a session."""


@pytest.fixture(scope="module")
def spark_cluster(
    spark_java: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkCluster]:
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


def paste(
    snippet: str, places: Mapping[str, str], *, python: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a snippet of the page as a driver, with the commands of this Python on its path."""
    path = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n"
    commands = path + at_places(snippet, places)
    return run_driver(["bash", "-e", "-c", commands], python=python, folder=folder)


@pytest.mark.slow
def test_executors_get_the_code_of_the_driver(
    spark_cluster: SparkCluster,
    bare_python: Path,
    fleet: Path,
    expected: dict[str, list[str]],
    tmp_path: Path,
) -> None:
    snippet = page_block("docs/spark/README.md", "sh", "--driver-host driver.example")
    places = {
        "/opt/python/bin/python": str(bare_python),
        "spark://host:7077": spark_cluster.url,
        "driver.example": LOOPBACK,
        "/shared/logs": str(fleet),
        "/shared/tables": str(tmp_path / "tables"),
    }
    done = paste(snippet, places, python=bare_python, folder=tmp_path)
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
    snippet = page_block("docs/spark/README.md", "sh", "spark-submit")
    with object_store() as options:
        system = fsspec.filesystem("s3", **options)
        system.mkdir("warehouse")
        settings = [
            f"--fs={name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in options.items()
        ]
        local = "--conf spark.driver.host=127.0.0.1 --conf spark.ui.enabled=false"
        places = {
            "spark://host:7077": f"{spark_cluster.url} {local}",
            "main.py pipeline": f"main.py pipeline --format delta {shlex.join(settings)}",
            "s3://backups/kafka": str(fleet),
        }
        done = paste(snippet, places, python=bare_python, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        system.get("s3://warehouse/kafka/", str(tmp_path / "got"), recursive=True)
    assert content(tmp_path / "got") == expected
    assert [path.name for path in (tmp_path / "got" / "records" / LOG).iterdir()] == [
        f"{0:020}.json"
    ]


@pytest.mark.slow
def test_a_cluster_of_pips_pyspark_on_one_machine(
    spark_java: Path, fleet: Path, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    snippet = page_block("docs/spark/README.md", "sh", "deploy.master.Master")
    places = {"7077": str(port), "/tmp/": f"{tmp_path}/", "/backups/kafka": str(fleet)}
    path = f"{Path(sys.executable).parent}:{find_java().parent}:{os.environ['PATH']}"
    run_pasted(at_places(snippet, places), tmp_path, {"PATH": path}, patience_s=SPARK_PATIENCE_S)
    assert content(tmp_path / "tables") == expected
