"""The worked example of docs/spark/README.md: its commands, its query, the output that it shows."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.pipeline.runs import run_here
from tests.support.source_tree import ROOT

from kvorum.cli import main

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def example() -> list[tuple[str, str]]:
    """Return the blocks of the example, each with its language."""
    page = (ROOT / "docs/spark/README.md").read_text(encoding="utf-8")
    _, section = page.split("\n### An example\n")
    return [(found[1], found[2]) for found in BLOCK.finditer(section)]


def arguments(command: str, verb: str) -> list[str]:
    words = shlex.split(command)
    assert words[:2] == ["kvorum", verb]
    return words[2:]


@pytest.mark.slow
def test_the_worked_example_shows_what_it_says(
    golden_sets: Path,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "golden").symlink_to(golden_sets)
    (_, pipeline), (_, program), (language, shown), (_, report) = example()
    given = arguments(pipeline, "pipeline")
    assert given[::2] == ["--input", "--output"]
    run_here(Path(given[1]), given[3])
    # Spark's own directory is another one than that of this process.
    program = program.replace('parquet(f"', f'parquet(f"{tmp_path}/')
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    capsys.readouterr()
    runpy.run_path("program.py", init_globals={"spark": spark})
    assert language == "text"
    assert capsys.readouterr().out.strip() == shown.strip()
    assert main(["report", *arguments(report, "report")]) == 0
    assert (tmp_path / "report" / "index.html").is_file()
