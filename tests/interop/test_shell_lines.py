"""``kvorum shell`` and the real tool, both given the same lines on their standard input."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop.every_record import every_batch, log_of
from tests.interop.metadata_shell import (
    SHELL_LEVEL,
    Shell,
    as_of_reference,
    history,
    load,
    shell_directories,
    snapshot_of,
    without_last_controls,
    without_provenance,
)
from tests.support.clients.driver import KafkaPythonDriver, TopicWish
from tests.support.golden_data import snapshots
from tests.support.kafka.java import Java, ToolResult, ToolRunner, shell_java
from tests.support.node import STANDALONE, Node
from tests.support.waiting import PATIENCE_S, asked_until

from kvorum.cli.shell import main
from kvorum.wire.records import read_batches


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a shell, and its output."""

    exit_code: int
    out: str
    err: str


def run(command: list[str], lines: str) -> Ended:
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return Ended(done.returncode, as_of_reference(done.stdout), done.stderr)


def our_shell(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kvorum.cli", "shell", *arguments]


def real_shell(java: Java, *arguments: str) -> list[str]:
    shell = "org.apache.kafka.shell.MetadataShell"
    return shell_java(java).command(shell, *arguments, log_level="OFF")


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    file = tmp_path / "metadata.checkpoint"
    file.write_bytes(without_last_controls(snapshot_of(load(log_of(every_batch()))[0])))
    return str(file)


WALK = r"""ls
cd image
pwd
ls
cd topics/byName
ls *
cd ..
cd nowhere
cd /local/version
pwd
cat /local/{version,commitId}
ls /local; ls
ls "/local
foo"
ls\ /
 ls /local

ls   /local
ls   /local
ls /local\
history
history 2
history x
history -- -1
!!
!1
!ls
ls !$
^ls^cat^
!99
ls '!!' \!!
history
help
man tree
man nothing
ls -h
tree -h
l /
cat
exit now
exit
ls
"""
WITHOUT_END = "pwd\nls"
AT_THE_DANGLING_NAME = "pwd\nfind /image/clientQuotas\npwd\n"


@pytest.mark.parametrize("lines", [WALK, WITHOUT_END, "", AT_THE_DANGLING_NAME])
def test_lines(snapshot: str, java: Java, lines: str) -> None:
    ours = run(our_shell("--snapshot", snapshot), lines)
    # The real shell may begin before it has read the whole file.
    theirs = asked_until(
        lambda: run(real_shell(java, "--snapshot", snapshot), lines),
        lambda theirs: theirs.out == ours.out,
        "the real shell has read all",
    )
    assert (ours.out, ours.exit_code) == (theirs.out, theirs.exit_code)
    assert ours.err in theirs.err


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--snapshot", "/none", "ls"], ["-s", "/none"]),
        *(["--snapshot", "{}", "find", "/image/clientQuotas"], ["-s{}", "--", "ls", "-x"]),
    ],
)
def test_ends_alike(snapshot: str, kafka_tools: ToolRunner, arguments: list[str]) -> None:
    words = [word.format(snapshot) for word in arguments]
    ours = run(our_shell(*words), "")
    # As above.
    theirs = asked_until(
        lambda: kafka_tools.run("kafka-metadata-shell", *words),
        lambda theirs: (theirs.stdout, theirs.exit_code) == (ours.out, ours.exit_code),
        "the real shell has read all",
    )
    assert (ours.out, ours.exit_code) == (theirs.stdout, theirs.exit_code)
    assert ours.err in theirs.stderr


@pytest.mark.parametrize(
    "arguments", [["ls"], ["--snapshot"], ["--snapshot", "x", "-y"], ["ls", "--help=1"]]
)
def test_wrong_usage_has_the_same_message(java: Java, arguments: list[str]) -> None:
    """The usage differs, as there are options that are ours, and with it where lines break."""
    ours, theirs = run(our_shell(*arguments), ""), run(real_shell(java, *arguments), "")
    assert (ours.exit_code, ours.out) == (theirs.exit_code, theirs.out) == (1, "")
    assert ours.err.startswith("usage: kvorum shell [-h]")
    sources = "--snapshot/-s --directory/-d --bootstrap-controller/-b"
    said = complaint(theirs.err).replace(
        "argument --snapshot/-s is required", f"one of the arguments {sources} is required"
    )
    assert complaint(ours.err) == said


def complaint(printed: str) -> str:
    """Return what is after the usage and the program's name, in one line."""
    return " ".join(printed.partition(": error: ")[2].split())


def test_help_shows_what_kafkas_shows_and_is_no_failure(java: Java) -> None:
    ours, theirs = run(our_shell("ls", "-h"), ""), run(real_shell(java, "ls", "-h"), "")
    assert (ours.exit_code, theirs.exit_code) == (0, 1)
    shared = {line for line in theirs.out.splitlines() if "SNAPSHOT" in line or "help" in line}
    assert "  --snapshot SNAPSHOT, -s SNAPSHOT" in shared & set(ours.out.splitlines())


SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    # Without them the log is at rest between two commands.
    "metadata.max.idle.interval.ms": "0",
}


class OurShell:
    """Our shell, one command at a time."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: str) -> str:
        """Run a command that has to succeed without a warning, and return what it prints."""
        assert main(words) == 0
        printed = self._capsys.readouterr()
        assert printed.err == ""
        return as_of_reference(printed.out)


@pytest.fixture
def ours(capsys: pytest.CaptureFixture[str]) -> OurShell:
    return OurShell(capsys)


@pytest.fixture(scope="module", params=["kvorum", "kafka"])
def node(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    java: Java,
    kafka_tools: ToolRunner,
) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("shell-sources")
    options = (*STANDALONE, *SHELL_LEVEL)
    made = (
        Node(folder, SETTINGS).format(options)
        if request.param == "kvorum"
        else Node(folder, SETTINGS, java=java).format(options, tools=kafka_tools)
    )
    with made, KafkaPythonDriver(made.address) as driver:
        for name in (f"shell-{number}" for number in range(30)):
            wish = TopicWish(name, 3, configs={"retention.ms": "3600000"})
            assert driver.create_topics([wish])[name].code == 0
        yield made


def test_a_running_quorum_and_its_directory_show_the_same(node: Node, ours: OurShell) -> None:
    live = ours.run("--bootstrap-controller", node.controller, "tree", "/")
    directory = ours.run("--directory", str(node.data), "tree", "/")
    assert "      shell-29:\n" in live
    assert live == directory
    assert ours.run("-d", str(node.metadata_log), "tree", "/") == directory


def test_the_real_tool_shows_the_same_of_the_log(
    node: Node, ours: OurShell, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    directory = ours.run("--directory", str(node.data), "tree", "/")
    assert Shell(kafka_tools, tmp_path).tree(history(node.metadata_log)) == directory


COMMANDS = [
    *(["ls"], ["ls", "/image/*"], ["find", "/image"], ["tree", "/"], ["cat", "/image/*"]),
    *(["cat", "/local/version", "/image/features/*"], ["ls", "/none", "/image/topics/byName/*"]),
    *(["cd", "/"], ["tre", "/"], ["nothing"], ["--", "ls", "-x"], ["--", "ls", "-h"]),
    *([["--", "cat"]]),
    *([""], ["--", "ls", "--", "-x"], ["find", "/image/topics/byName/shell-{1,2?}/0"]),
]  # fmt: skip


def test_every_command_on_a_snapshot(
    node: Node, ours: OurShell, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    """A copy, without the footer that the real tool may wait for in vain; no lock is beside it."""
    latest = snapshots(node.metadata_log)[max(snapshots(node.metadata_log))]
    copy = tmp_path / "in" / "here" / "copy.checkpoint"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(without_last_controls(latest.read_bytes()))
    assert "      shell-1:\n" in ours.run("--snapshot", str(copy), "tree", "/")
    for command in COMMANDS:
        shown = ours.run("--snapshot", str(copy), *command)
        theirs = shown_by_the_real_tool(kafka_tools, copy, command, shown)
        assert (shown, 0) == (theirs.stdout, theirs.exit_code), command


def shown_by_the_real_tool(
    tools: ToolRunner, file: Path, command: Sequence[str], awaited: str
) -> ToolResult:
    """Return what it says once that is `awaited`: it may begin before it has read all."""
    return asked_until(
        lambda: tools.run("kafka-metadata-shell", "--snapshot", str(file), *command),
        lambda theirs: theirs.stdout == awaited,
        "the real tool has read all",
    )


def test_a_node_that_runs_keeps_its_snapshots_to_itself(
    node: Node, capsys: pytest.CaptureFixture[str], kafka_tools: ToolRunner
) -> None:
    latest = max(node.metadata_log.glob("*.checkpoint"))
    words = ["--snapshot", str(latest), "ls"]
    theirs = kafka_tools.run("kafka-metadata-shell", *words)
    assert (main(words), theirs.exit_code) == (1, 1)
    complaint = capsys.readouterr().err
    assert complaint.startswith("Unexpected error: Unable to lock ")
    assert theirs.stderr.startswith(complaint)


def latest_snapshot_and_log(directory: Path) -> bytes:
    """Return the latest snapshot, and the batches of the log that lie after it."""
    found = snapshots(directory)
    end = max(found, default=0)
    parts = [found[end].read_bytes()] if found else []
    for segment in sorted(directory.glob("*.log")):
        batches = read_batches(segment.read_bytes())
        parts.extend(bytes(batch.data) for batch in batches if batch.base_offset >= end)
    return b"".join(parts)


def test_golden_directories_show_what_the_real_tool_shows_of_their_files(
    golden_sets: Path, ours: OurShell, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    shell = Shell(kafka_tools, tmp_path)
    compared = 0
    for directory in shell_directories(golden_sets):
        data = latest_snapshot_and_log(directory)
        if load(data)[0].features.metadata_version is None:
            continue
        shown = ours.run("--directory", str(directory), "tree", "/")
        assert without_provenance(shown) == without_provenance(shell.tree(data)), directory
        compared += 1
    assert compared > 5
