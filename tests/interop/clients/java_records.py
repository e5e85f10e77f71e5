"""Kafka's Java producer and consumer, each in a process of its own."""

import subprocess

from tests.support.kafka.java import Java
from tests.support.waiting import PATIENCE_S, Threads


class JavaClients:
    """The program with both clients."""

    def __init__(self, java: Java) -> None:
        self._java = java

    def command(self, *arguments: str) -> list[str]:
        return self._java.program("RecordClients", *arguments)

    def produce(self, servers: str, topic: str, codec: str, values: list[bytes]) -> list[int]:
        """Send records, and return the offset of each."""
        asked = (value.decode() for value in values)
        answers = self._java.answers("RecordClients", "produce", servers, topic, codec, asked=asked)
        return [int(line) for line in answers]

    def commit_time(self, servers: str, topic: str, group: str, timestamp_ms: int) -> int:
        """Commit the first offset of a time in partition 0, and return what is committed."""
        asked = ("seek", servers, topic, group, str(timestamp_ms))
        (committed,) = self._java.answers("RecordClients", *asked)
        return int(committed)


class JavaMember:
    def __init__(
        self,
        clients: JavaClients,
        servers: str,
        group: str,
        topic: str,
        *,
        protocol: str = "classic",
    ) -> None:
        self.values: list[bytes] = []
        self.partitions: set[int] = set()
        self._process = subprocess.Popen(
            clients.command("member", servers, topic, group, protocol),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._threads = Threads()
        self._threads.start(self._read)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(PATIENCE_S) == 0
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
                self.values.append(text.encode())
            elif word == "partitions":
                self.partitions = {int(one) for one in text.split(",") if one}
