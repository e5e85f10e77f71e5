"""``kvorum shell`` and the real tool, both given the same lines on their standard input."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop.every_record import every_batch, log_of
from tests.interop.metadata_shell import as_of_reference, load, snapshot_of, without_last_controls
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner, shell_java
from tests.support.waiting import PATIENCE_S, asked_until


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


def test_help_ends_alike(java: Java) -> None:
    ours, theirs = run(our_shell("ls", "-h"), ""), run(real_shell(java, "ls", "-h"), "")
    assert ours.exit_code == theirs.exit_code == 1
    shared = {line for line in theirs.out.splitlines() if "SNAPSHOT" in line or "help" in line}
    assert "  --snapshot SNAPSHOT, -s SNAPSHOT" in shared & set(ours.out.splitlines())
