"""Commands on a terminal: what they show while they work, and after Ctrl-C."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.node_process import KVORUM
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.wire.records import BatchOptions, RecordData, build_batch

CLEARED = "\r\033[K"
SIMULATE = (*KVORUM, "simulate", "--seed", "1", "--seeds", "1000", "--jobs", "2")
INTERRUPTED_WHILE_LOADED = """
import sys
from kvorum import cli
def interrupted(name):
    raise KeyboardInterrupt
cli._load = interrupted
sys.exit(cli.main(["simulate"]))
"""
QUICK_DUMP = """
import sys
from kvorum.cli import main, progress
progress.FIRST_S = 0.0
sys.exit(main(["dump-log", "--print-data-log", "--files", sys.argv[1]]))
"""
LONG_WORLDS = {
    # Days in a world are minutes here.
    "quorum": ["--duration", "100000"],
    "brokers": [],
}
MANY = 64
"""So many MiB are dumped by several processes."""


class TerminalSession:
    """A command whose standard error, at least, is a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._text = b""

    def text(self) -> str:
        """Return all that came to the terminal so far."""
        try:
            while piece := os.read(self._terminal, 1 << 16):
                self._text += piece
        except BlockingIOError:
            pass
        except OSError:
            # Linux: the command has ended, and nobody else has the terminal.
            pass
        return self._text.decode(errors="replace")

    def wait_for_text(self, words: str) -> None:
        wait_for(lambda: words in self.text(), f"it shows {words!r}", otherwise=self.text)

    def wait(self) -> int:
        """Return the exit code; meanwhile what it writes is read."""
        return wait_for(self._exit_code, "it ends", otherwise=self.text)

    def _exit_code(self) -> int | None:
        self.text()
        return self.process.poll()


@contextmanager
def on_terminal(command: Sequence[str], *, stdout: int | None = None) -> Generator[TerminalSession]:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        with process:
            try:
                yield TerminalSession(process, ours)
            finally:
                process.kill()
    finally:
        os.close(ours)


def press_ctrl_c(session: TerminalSession) -> None:
    """Interrupt all processes of the session, as a terminal does."""
    os.killpg(session.process.pid, signal.SIGINT)


def has_ended(group: int) -> bool:
    """Return whether no process of a session is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("world", LONG_WORLDS)
def test_a_simulation_shows_its_progress_and_an_interrupt_ends_it_at_once(world: str) -> None:
    command = [*SIMULATE, "--only", world, *LONG_WORLDS[world]]
    with on_terminal(command) as session:
        session.wait_for_text("0 of 1000 ")
        press_ctrl_c(session)
        assert session.wait() == 128 + signal.SIGINT
        wait_for(lambda: has_ended(session.process.pid), "no process of it is left")
    assert session.text().splitlines()[-1] == "kvorum simulate: interrupted"
    assert re.search(r"\n?0 seeds(?: of brokers)?, 0 failed", session.text())
    assert "Traceback" not in session.text()


def test_an_interrupted_simulation_reports_the_seeds_so_far() -> None:
    with on_terminal([*SIMULATE, "--only", "quorum", "--duration", "1"]) as session:
        wait_for(
            lambda: re.search(r"[1-9]\d* of 1000 quorums", session.text()),
            "a seed is done",
            otherwise=session.text,
        )
        press_ctrl_c(session)
        assert session.wait() == 128 + signal.SIGINT
    reported = re.search(r"([1-9]\d*) seeds, 0 failed", session.text())
    assert reported is not None
    assert f"{'property':<80}{'checked':>14}" in session.text()
    assert session.text().splitlines()[-1] == "kvorum simulate: interrupted"


def test_an_interrupt_while_a_command_is_loaded_is_one_line() -> None:
    command = [sys.executable, "-c", INTERRUPTED_WHILE_LOADED]
    with on_terminal(command) as session:
        assert session.wait() == 128 + signal.SIGINT
    assert session.text().splitlines() == ["kvorum simulate: interrupted"]


def test_a_dump_by_several_processes_shows_its_progress(tmp_path: Path) -> None:
    batch = build_batch([RecordData(b"k", b"v" * 8000)] * 100, BatchOptions())
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(batch * (MANY * (1 << 20) // len(batch)))
    command = [sys.executable, "-c", QUICK_DUMP, str(log)]
    plain = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
    output = tmp_path / "output"
    with output.open("wb") as to, on_terminal(command, stdout=to.fileno()) as session:
        assert session.wait() == 0
    assert re.search(r"kvorum dump-log: [1-9]\d* MiB read, now /", session.text())
    # The line is away when other lines come.
    complaints = plain.stderr.decode().replace("\n", "\r\n")
    assert session.text().endswith(CLEARED + complaints)
    assert output.read_bytes() == plain.stdout
