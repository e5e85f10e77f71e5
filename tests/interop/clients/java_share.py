"""Kafka's Java consumer of share groups, in a process of its own."""

import subprocess
from typing import Literal, NamedTuple

from tests.support.kafka.java import Java
from tests.support.waiting import PATIENCE_S, Threads

Mode = Literal["implicit", "explicit"]


class Delivered(NamedTuple):
    """A record as a member has got it, with its deliveries so far."""

    value: str
    delivery_count: int


class JavaShareMember:
    """A member of a share group."""

    def __init__(
        self, java: Java, servers: str, group: str, topic: str, mode: Mode = "explicit"
    ) -> None:
        self.delivered: list[Delivered] = []
        self.problems: list[str] = []
        self._process = subprocess.Popen(
            java.program("ShareClients", servers, topic, group, mode),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._threads = Threads()
        self._threads.start(self._read)

    @property
    def values(self) -> list[str]:
        """The values in the order in which they came."""
        return [one.value for one in self.delivered]

    def kill(self) -> None:
        """End the process as a crash does."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Have the member leave, unless it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        was_killed = self._process.poll() is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(PATIENCE_S) == 0 or was_killed
        finally:
            self._process.kill()
            self._process.wait()
            self._threads.join()
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, text = line.rstrip("\n").partition(" ")
            if word == "value":
                count, _, value = text.partition(" ")
                self.delivered.append(Delivered(value, int(count)))
            elif word == "problem":
                self.problems.append(text)
