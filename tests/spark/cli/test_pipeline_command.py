"""``kvorum pipeline`` as a user runs it: in a process of its own."""

import subprocess
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from tests.support.node_process import run_python

pytestmark = pytest.mark.usefixtures("spark_java")
NODE = "standalone-4.3.1/metadata/broker-11"


def run_pipeline(source: Path, target: Path, *more: str) -> subprocess.CompletedProcess[str]:
    options = ("--input", str(source), "--output", str(target), "--master", "local[1]", *more)
    return run_python("-m", "kvorum.cli", "pipeline", *options, timeout_s=300)


@pytest.mark.slow
def test_a_metadata_log_becomes_tables_and_a_rerun_adds_nothing(
    golden_sets: Path, tmp_path: Path
) -> None:
    done = run_pipeline(golden_sets / NODE, tmp_path / "tables")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("run 1: 67 records of 1 cluster (0 without news), ")
    assert "Traceback" not in done.stderr
    topics: Any = pyarrow.dataset.dataset(tmp_path / "tables" / "topics", partitioning="hive")
    names = topics.to_table().column("topic_name").to_pylist()
    assert names == ["carts", "clicks_raw", "emails", "reviews", "sessions"]
    again = run_pipeline(golden_sets / NODE, tmp_path / "tables")
    assert (again.returncode, again.stdout, again.stderr) == (
        0, f"nothing new in 1 cluster: {tmp_path / 'tables'}\n", "",
    )  # fmt: skip


@pytest.mark.slow
def test_damage_is_one_line_that_names_file_and_offset(golden_sets: Path, tmp_path: Path) -> None:
    source = golden_sets / NODE / "__cluster_metadata-0" / "00000000000000000000.log"
    damaged = bytearray(source.read_bytes())
    damaged[100] ^= 1
    segment = tmp_path / source.name
    segment.write_bytes(damaged)
    done = run_pipeline(segment, tmp_path / "tables", "--cluster-id", "mine")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"kvorum pipeline: {segment}: damaged at offset 0: damaged at byte 0: ")
    assert "Traceback" not in done.stderr
