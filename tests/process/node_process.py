"""Nodes as processes of their own: started, stopped and killed as an operator would."""

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
RUNS = "The node runs"
KVORUM = [sys.executable, "-m", "kvorum.cli"]
# A broker that was killed may register again once its old session has run out.
QUICK = {"broker.session.timeout.ms": "400", "broker.heartbeat.interval.ms": "100"}
# Kafka's own values: a node that stands still for a moment, on a busy machine, is not fenced.
PATIENT = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}
OWN_LINE = "kvorum server: "


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code and everything it said on stderr."""

    exit_code: int
    lines: tuple[str, ...]

    @property
    def last_line(self) -> str:
        """The line an operator sees last."""
        return self.lines[-1] if self.lines else ""


class NodeProcess:
    """One ``kvorum server``; as a context it is running, and killed at the end."""

    def __init__(self, properties: Path) -> None:
        self.properties = properties
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lines: list[str] = []
        self._said = threading.Condition()
        self._is_at_end = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    @property
    def pid(self) -> int:
        """The process id of a node that was launched."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it and return once it says that it runs."""
        self.launch()
        try:
            self.wait_for_line(RUNS)
        except BaseException:
            self.kill()
            raise
        return self

    def launch(self) -> None:
        """Start it and return at once."""
        assert self._process is None, "it runs already"
        self._lines, self._is_at_end = [], False
        self._process = subprocess.Popen(
            [*KVORUM, "server", str(self.properties)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, args=[self._process], daemon=True)
        self._reader.start()

    def wait_for_line(self, words: str, *, timeout_s: float = START_TIMEOUT_S) -> str:
        """Return the first line with `words`; fails where the process ends without it."""

        def found() -> str | None:
            return next((line for line in self._lines if words in line), None)

        with self._said:
            self._said.wait_for(lambda: found() is not None or self._is_at_end, timeout_s)
            line = found()
        assert line is not None, f"never said {words!r}:\n" + "\n".join(self._lines)
        return line

    def terminate(self) -> Ended:
        """Send SIGTERM and wait for the end."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> Ended:
        """Send SIGKILL and wait for the end."""
        self.send(signal.SIGKILL)
        return self.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def lines(self) -> tuple[str, ...]:
        """Return what it has said so far."""
        with self._said:
            return tuple(self._lines)

    def wait(self, *, timeout_s: float = STOP_TIMEOUT_S) -> Ended:
        """Wait until it ends; one that does not is killed, and that is a failure."""
        assert self._process is not None
        assert self._reader is not None
        try:
            exit_code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise AssertionError("it does not end:\n" + "\n".join(self._lines)) from error
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._process = None
        return Ended(exit_code, tuple(self._lines))

    def run_to_end(self) -> Ended:
        """Start a node that is expected to end by itself."""
        self.launch()
        return self.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            with self._said:
                self._lines.append(line.rstrip("\n"))
                self._said.notify_all()
        with self._said:
            self._is_at_end = True
            self._said.notify_all()


def write_properties(file: Path, settings: Mapping[str, str]) -> None:
    """Write a server.properties."""
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    file.write_text(text, encoding="utf-8")


def run_kvorum(*arguments: str) -> str:
    """Run a command that has to succeed and return what it printed."""
    done = subprocess.run(
        [*KVORUM, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
