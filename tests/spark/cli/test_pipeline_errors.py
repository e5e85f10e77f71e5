"""The command ``kvorum pipeline``: what is wrong is one line, with the exit code that fits."""

from importlib import import_module
from pathlib import Path

import pytest

from kvorum.cli import main
from kvorum.cli.pipeline import root_cause

STACK_TRACE = """An error occurred while calling z:org.apache.spark.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:3122)
Caused by: java.io.IOException: Cannot run program "python": error=13, Permission denied
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=13, Permission denied
\t... 20 more
"""


NO_SIZES = ("lots", "", "1", "0g", "1gb", "-1g", "1.5g")


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        *(("--driver-memory", size, "a size such as 512m or 2g") for size in NO_SIZES),
        ("--fs", "anon", "KEY=VALUE"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, wanted: str
) -> None:
    paths = ["--input", str(tmp_path), "--output", str(tmp_path / "out")]
    assert main(["pipeline", *paths, f"{option}={value}"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"kvorum pipeline: error: argument {option}: {value!r} is not {wanted}"


def test_a_stack_trace_of_java_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise import_module("py4j.protocol").Py4JError(STACK_TRACE)

    monkeypatch.setattr("kvorum.spark.pipeline.run.run_pipeline", fail)
    assert main(["pipeline", "--input", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == (
        "kvorum pipeline: Spark: java.io.IOException: error=13, Permission denied\n"
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Answer from Java side is empty", "Answer from Java side is empty"),
        ("An error occurred.\n: java.lang.Error: full\n\tat a.b(c)", "java.lang.Error: full"),
    ],
)
def test_an_exception_without_a_cause_is_its_own(text: str, cause: str) -> None:
    assert root_cause(text) == cause


def test_inputs_without_logs_are_one_line_without_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, reason in (
        (tmp_path, "holds neither segments (.log) nor snapshots (.checkpoint)"),
        (tmp_path / "none", "no such file or directory"),
    ):
        assert main(["pipeline", "--input", str(path), "--output", str(tmp_path / "out")]) == 1
        assert capsys.readouterr().err == f"kvorum pipeline: {path}: {reason}\n"
    assert not (tmp_path / "out").exists()
