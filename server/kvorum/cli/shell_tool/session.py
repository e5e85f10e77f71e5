"""One session of the shell: it runs command lines one after the other, and prints what they say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from kvorum.cli.shell_tool.arguments import help_width
from kvorum.cli.shell_tool.source import Root
from kvorum.inspection.shell.commands import ROOT, Surroundings, read_step
from kvorum.inspection.shell.line_history import LineHistory
from kvorum.inspection.shell.line_words import split_line

PROMPT = ">> "
BANNER = "[ Kafka Metadata Shell ]"


class Session:
    """The working directory and the lines read so far.

    `screen_width` returns the width of the screen in characters, None without one.
    """

    def __init__(self, root: Root, screen_width: Callable[[], int | None]) -> None:
        self._root = root
        self._screen_width = screen_width
        self._working_directory = ROOT
        self._history = LineHistory()

    def run_line(self, line: str) -> bool:
        """Run a line, print its output, and return False if it ends the session.

        Raises `DanglingNameError`, with nothing of the output printed, as Kafka's shell.
        """
        line = self._history.expand(line)
        self._history.add(line)
        step = read_step(split_line(line), self.surroundings())
        print("".join(f"{text}\n" for text in step.lines), end="")
        if step.goes_to is not None:
            self._working_directory = step.goes_to
        return not step.ends

    def surroundings(self) -> Surroundings:
        """Return what the next command finds around it."""
        return Surroundings(
            self._root(),
            self._working_directory,
            screen_width=self._screen_width(),
            help_width=help_width(),
            history=self._history,
        )


def run_once(root: Root, words: Sequence[str]) -> None:
    """Run one command and print its output; raises `DanglingNameError` after that."""
    for text in read_step(words, Surroundings(root(), help_width=help_width())).lines:
        print(text)


def run_lines(session: Session) -> None:
    """Run the lines of the standard input; one that does not end is left out."""
    while True:
        print(PROMPT, end="", flush=True)
        line = sys.stdin.readline()
        if not line.endswith("\n") or not session.run_line(line.removesuffix("\n")):
            return
