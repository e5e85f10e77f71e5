"""One node among others, ours or real Kafka's: where it listens, its files and its process."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tests.support.kafka.java import Java
from tests.support.node_process import KAFKA_RUNS, NodeProcess, kvorum_server

from kvorum.storage.java_properties import load_java_properties

Kind = Literal["kvorum", "kafka"]
Key = tuple[int, str]
"""A replica: its node id, and the id of its metadata directory."""
ORDERLY_END: dict[Kind, int] = {"kvorum": 0, "kafka": 143}
"""The exit code of a node that was asked to stop with a signal: Java's tells of the signal."""
HEAP_MB = 256
ATTEMPTS = 2
"""How often a real node is started in all: where memory is short, Java dies now and then."""


def process_of(kind: Kind, java: Java, properties: Path, *, heap_mb: int = HEAP_MB) -> NodeProcess:
    """Return the process of a node, not started; its log is beside its properties."""
    log = properties.with_suffix(".log")
    if kind == "kvorum":
        return kvorum_server(properties, log)
    command = java.command("kafka.Kafka", str(properties), heap_mb=heap_mb, log_level="INFO")
    return NodeProcess(command, log, ready=KAFKA_RUNS, attempts=ATTEMPTS)


class Node:
    """A node that others talk to while the tests start and end it."""

    def __init__(self, kind: Kind, node_id: int, port: int, folder: Path, java: Java) -> None:
        self.kind: Kind = kind
        self.node_id = node_id
        self.port = port
        self.folder = folder
        self.process = process_of(kind, java, self.properties)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def properties(self) -> Path:
        """Its configuration."""
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """Where a controller keeps the metadata log."""
        return self.folder / "data"

    @property
    def key(self) -> Key:
        """Who it is, by its directory as it is now."""
        text = (self.data / "meta.properties").read_bytes()
        return self.node_id, load_java_properties(text)["directory.id"]

    @property
    def log_text(self) -> str:
        """All that it has logged, in every one of its lives."""
        log = self.properties.with_suffix(".log")
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def start(self) -> None:
        """Start it and return at once: it may have to wait for others."""
        self.process.launch()

    def stop(self) -> int | None:
        """Have it shut down in order; return how it ended, None if it did not run."""
        return self.process.terminate().exit_code if self.process.is_launched else None

    def kill(self) -> None:
        """End it where it stands, if it runs."""
        if self.process.is_launched:
            self.process.kill()
