"""A shell that a snippet of a page is pasted into, and that ends with all that it has started."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.support.waiting import PATIENCE_S, wait_for

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def shell_environment(added: Mapping[str, str] = _NOTHING) -> dict[str, str]:
    """Return the environment of this process, with its Python and commands first on the path."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, **added}


class Shell:
    """A shell that runs a snippet, and its output so far."""

    def __init__(self, output: Path, process: subprocess.Popen[bytes]) -> None:
        self._output = output
        self._process = process

    @property
    def printed(self) -> str:
        return self._output.read_text("utf-8", errors="replace")

    def wait_until_printed(self, words: str, times: int = 1) -> None:
        wait_for(
            lambda: self.printed.count(words) >= times or None,
            f"{words!r} is printed {times} times",
            otherwise=lambda: self.printed,
        )

    def wait_for_end(self, patience_s: float = PATIENCE_S) -> int:
        """Return the exit code of the last command, or of the first that fails."""
        return wait_for(
            self._process.poll,
            "the last command has ended",
            otherwise=lambda: self.printed,
            patience_s=patience_s,
        )


@contextmanager
def pasted(snippet: str, folder: Path, added: Mapping[str, str] = _NOTHING) -> Generator[Shell]:
    """Run a snippet in a shell, and end it with all that it has started."""
    folder.mkdir(exist_ok=True)
    output = folder / "output.txt"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            ["bash", "-e"],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=shell_environment(added),
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(snippet.encode())
        process.stdin.close()
        try:
            yield Shell(output, process)
        finally:
            # Nothing is left of a snippet that ended without a process in the background.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)


def run_pasted(
    snippet: str,
    folder: Path,
    added: Mapping[str, str] = _NOTHING,
    *,
    patience_s: float = PATIENCE_S,
) -> str:
    """Run a snippet whose commands all succeed, and return what they print."""
    with pasted(snippet, folder, added) as shell:
        code = shell.wait_for_end(patience_s)
        assert code == 0, shell.printed
        return shell.printed
