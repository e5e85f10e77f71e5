"""Kafka's own class in a Java process that takes steps, a line each."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

from tests.support.kafka.java import Java


class Oracle:
    """A program of `JAVA_SOURCES`; a line in, a line out."""

    def __init__(self, given: IO[str], answered: IO[str]) -> None:
        self._given = given
        self._answered = answered

    def answer(self, line: str) -> str:
        self._given.write(line + "\n")
        self._given.flush()
        answer = self._answered.readline()
        assert answer, f"the oracle ended at: {line}"
        return answer.rstrip("\n")


@contextmanager
def line_oracle(java: Java, name: str) -> Generator[Oracle]:
    """Run the program of that name."""
    command = java.program(name)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Oracle(process.stdin, process.stdout)
        process.stdin.close()
