"""``kvorum pipeline`` on a standalone Spark cluster whose machines have no kvorum."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from benchmarks.fleet.cluster_log import write_cluster
from tests.spark.object_store import SOCKETS_LEFT_OPEN, fsspec, object_store
from tests.spark.pipeline.runs import content, run_here
from tests.support.spark.spark_cluster import (
    SPARK_HOME,
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
MAIN: Final = "import sys\nfrom kvorum.cli import main\nsys.exit(main())\n"


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
