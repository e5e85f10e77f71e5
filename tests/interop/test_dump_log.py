"""``kvorum dump-log`` and kafka-dump-log on the same files: golden ones of any release, damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.dump_log import decoder_of, dump, log_files
from tests.support.kafka.tools import ToolRunner

METADATA_LOG = "dynamic-4.3.1/metadata/controller-1/__cluster_metadata-0"
DATA_LOG = "dynamic-4.3.1/data/emails-tx-0"


def check(
    tools: ToolRunner, capture: pytest.CaptureFixture[str], files: str, *options: str
) -> None:
    ours = dump(capture, "--files", files, *options)
    theirs = tools.run("kafka-dump-log", "--files", files, *options)
    assert ours.stdout == theirs.stdout, (files, options)
    assert ours.stderr == theirs.stderr, (files, options)
    assert ours.exit_code == theirs.exit_code


@pytest.mark.parametrize(
    "name", ["dynamic-4.3.1", "static-3.9.1", "ladder-4.3.1", "standalone-4.3.1", "legacy-formats"]
)
def test_every_golden_file_is_printed_as_by_the_reference_release(
    golden_sets: Path, name: str, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    files = log_files(golden_sets / name)
    assert len(files) >= 10
    for file in files:
        check(kafka_tools, capsys, str(file), decoder_of(file))


@pytest.mark.parametrize(
    "options",
    [
        ("--deep-iteration",),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata"),
        ("--cluster-metadata-decoder", "--skip-record-metadata"),
        ("--max-bytes", "1000"),
        ("--verify-index-only",),
        ("--index-sanity-check",),
    ],
)
def test_options_do_what_kafkas_do(
    golden_sets: Path,
    options: tuple[str, ...],
    kafka_tools: ToolRunner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    is_metadata_only = "--cluster-metadata-decoder" in options
    for folder in (METADATA_LOG,) if is_metadata_only else (METADATA_LOG, DATA_LOG):
        for file in log_files(golden_sets / folder):
            check(kafka_tools, capsys, str(file), *options)


def flip(position: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = next(iter(sorted(folder.glob("*.log"))))
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(data)

    return spoil


def cut(size: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = next(iter(sorted(folder.glob("*.log"))))
        path.write_bytes(path.read_bytes()[:-size])

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [flip(21), flip(30), flip(70), cut(1), cut(30), cut(60)],
    ids=["attributes", "time", "record", "one byte", "thirty bytes", "sixty bytes"],
)
@pytest.mark.parametrize("source", [METADATA_LOG, DATA_LOG])
def test_damaged_logs_are_shown_alike(
    golden_sets: Path,
    tmp_path: Path,
    source: str,
    spoil: Callable[[Path], None],
    kafka_tools: ToolRunner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(golden_sets / source, tmp_path / "log")
    spoil(tmp_path / "log")
    for file in sorted((tmp_path / "log").glob("*.log")):
        check(kafka_tools, capsys, str(file))


def test_several_files_are_printed_one_after_the_other(
    golden_sets: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in log_files(golden_sets / METADATA_LOG) if path.suffix != ".log"]
    check(kafka_tools, capsys, ",".join([*files, "other.txt"]))
