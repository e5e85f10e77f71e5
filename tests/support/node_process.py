"""Nodes as processes of their own, ours or real Kafka's: started, watched, stopped and killed.

No process outlives the run that started it, not even one whose pytest was killed: the guard, a
process of its own, learns of each and kills what is left once pytest has ended.
"""

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, Self, TypeVar

from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S, Errors, wait_for

KVORUM: Final = (sys.executable, "-m", "kvorum.cli")
RUNS: Final = "The node runs"
"""The line of a kvorum server once it serves."""
KAFKA_RUNS: Final = "Kafka Server started"
"""The line of real Kafka once it serves."""
LAST_WORDS_MAX: Final = 6000
_GUARD: Final = """
import os, signal, sys
running = set()
for line in sys.stdin:
    (running.add if line[0] == "+" else running.discard)(int(line[1:]))
for pid in running:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""
_Found = TypeVar("_Found")


def run_python(
    *arguments: str,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run this Python with arguments, and return how it ended and what it printed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class StartedAgainWarning(UserWarning):
    """A process did not come up and was started again."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process: its exit code and everything it said in this life."""

    exit_code: int
    lines: tuple[str, ...]

    def has_said(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    @property
    def last_line(self) -> str:
        """The line an operator sees last."""
        return self.lines[-1] if self.lines else ""


class NodeProcess:
    """One process of a node; as a context it is running, and killed at the end.

    What it says goes to the end of `log`, or to a file without a reader. It runs once it has said
    `ready`; one that does not get there is started again, `attempts` times in all. Whatever it has
    to do it does within `patience_s`: one that hangs is killed, and that is a failure.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path | None = None,
        *,
        ready: str = RUNS,
        attempts: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = command
        self.log = log
        self.patience_s = PATIENCE_S
        self._ready = ready
        self._attempts = attempts
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._said: BinaryIO | None = None
        self._begins_at = 0
        self._last_life = ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.is_launched:
            self.kill()

    @property
    def pid(self) -> int:
        return self._launched().pid

    @property
    def is_launched(self) -> bool:
        """Whether it was launched and its end was not waited for, which may have come."""
        return self._process is not None

    @property
    def is_running(self) -> bool:
        """Whether it was launched and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start it and return once it says that it runs."""
        self.launch()
        self.come_up()
        return self

    def come_up(self) -> None:
        """Wait until a process that was launched says that it runs; one that never does is killed.

        Where it may be started again, it is.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                self.wait_for_line(self._ready)
            except BaseException as error:
                self.kill()
                if attempt == self._attempts or not isinstance(error, AssertionError):
                    raise
                _report_another_start(str(error))
                self.launch()
            else:
                return

    def launch(self) -> None:
        """Start it and return at once."""
        assert self._process is None, "it runs already"
        said: BinaryIO = (
            tempfile.TemporaryFile()  # noqa: SIM115 - closed once the process has ended
            if self.log is None
            else self.log.open("a+b")
        )
        self._begins_at = said.seek(0, os.SEEK_END)
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=self._environment,
                start_new_session=True,
            )
        except BaseException:
            said.close()
            raise
        self._said = said
        _tell_guard(f"+{self._process.pid}")

    def wait_for_line(self, words: str) -> str:
        """Return the first line with `words`; fails where the process ends without it.

        A line of which only a part is there is waited for.
        """
        return self.wait_until(
            lambda: next((line for line in self._whole_lines() if words in line), None),
            f"it says {words!r}",
        )

    def wait_until(
        self, look: Callable[[], _Found | None], state: str, *, not_yet: Errors = ()
    ) -> _Found:
        """Wait as `wait_for` does; fails at once where the process ends before it is so."""

        def look_while_it_runs() -> _Found | None:
            has_ended = not self.is_running
            try:
                found = look()
            except not_yet:
                found = None
            if has_ended and (found is None or found is False):
                raise AssertionError(f"it ended before {state}:\n{self.last_words()}")
            return found

        return wait_for(
            look_while_it_runs, state, otherwise=self.last_words, patience_s=self.patience_s
        )

    def terminate(self) -> Ended:
        """Send SIGTERM and wait for the end."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> Ended:
        """Send SIGKILL and wait for the end."""
        self.send(signal.SIGKILL)
        return self.wait()

    def send(self, number: signal.Signals) -> None:
        self._launched().send_signal(number)

    def lines(self) -> tuple[str, ...]:
        """Return what it has said so far in this life, or all it said in the last one."""
        return tuple(self._text().splitlines())

    def last_words(self) -> str:
        """Return the end of what it has said: what a failure shows."""
        return f"{self.command[-1]} said last:\n{self._text()[-LAST_WORDS_MAX:]}"

    def wait(self) -> Ended:
        """Wait until it ends; one that does not is killed, and that is a failure."""
        process = self._launched()
        try:
            process.wait(self.patience_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise AssertionError(f"it does not end; {self.last_words()}") from error
        _tell_guard(f"-{process.pid}")
        self._last_life = self._text()
        assert self._said is not None
        self._said.close()
        self._process = self._said = None
        return Ended(process.returncode, self.lines())

    def run_to_end(self) -> Ended:
        """Start a node that is expected to end by itself."""
        self.launch()
        return self.wait()

    def _launched(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was not launched"
        return self._process

    def _whole_lines(self) -> list[str]:
        """Return the lines that have their end; of a process that has ended, all of them."""
        has_ended = not self.is_running
        lines = self._text().splitlines(keepends=True)
        return [line.rstrip("\r\n") for line in lines if has_ended or line.endswith("\n")]

    def _text(self) -> str:
        if self._said is None:
            return self._last_life
        # The process has the same place in the file: what is read must not move it.
        file = self._said.fileno()
        data = os.pread(file, os.fstat(file).st_size - self._begins_at, self._begins_at)
        return data.decode("utf-8", errors="replace")


def kvorum_server(properties: Path, log: Path | None = None) -> NodeProcess:
    return NodeProcess([*KVORUM, "server", str(properties)], log)


def write_properties(file: Path, settings: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    file.write_text(text, encoding="utf-8")


def run_kvorum(*arguments: str) -> str:
    """Run a command that has to succeed and return what it printed."""
    done = subprocess.run(
        [*KVORUM, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _report_another_start(reason: str) -> None:
    """Have pytest list it in its summary, whatever else it takes warnings for."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", StartedAgainWarning)
        warnings.warn(reason, StartedAgainWarning, stacklevel=3)


@cache
def _guard() -> subprocess.Popen[bytes]:
    """Start the guard, whose standard input ends when this process does, however it does.

    It is in a session of its own, as the nodes are, so that no signal to pytest's group ends it.
    """
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GUARD], stdin=subprocess.PIPE, start_new_session=True
    )
    atexit.register(guard.communicate)
    return guard


def _tell_guard(line: str) -> None:
    guard = _guard()
    assert guard.stdin is not None
    guard.stdin.write(f"{line}\n".encode())
    guard.stdin.flush()
