"""Kafka Connect: a distributed worker in a process of its own, and its connectors."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.kafka.java import JAVA_SOURCES, Java
from tests.support.node_process import NodeProcess, write_properties
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE_S

WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
LINE_SOURCE: Final = "LineSource"
"""The connector that a worker has, a program of the tests."""
RUNS: Final = "Kafka Connect started"
"""The line of a worker that answers its clients; it may not have joined its group."""
HEAP_MB: Final = 256
SETTINGS: Final = {
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.partitions": "1",
    "status.storage.topic": "connect-status",
    "status.storage.partitions": "1",
    # A worker that is killed is missed soon, and another has its tasks at once.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
}
_NOT_YET: Final = (urllib.error.URLError, ConnectionError, TimeoutError)


class ConnectWorker:
    """A worker of the cluster of its brokers; as a context it runs, and is killed at the end."""

    def __init__(
        self, folder: Path, servers: str, settings: Mapping[str, str], *, java: Java
    ) -> None:
        (port,) = free_ports(1)
        self.worker_id = f"127.0.0.1:{port}"
        properties = folder / "worker.properties"
        own = {
            "bootstrap.servers": servers,
            "listeners": f"http://{self.worker_id}",
        }
        write_properties(properties, {**SETTINGS, **own, **settings})
        command = java.command(
            WORKER,
            str(properties),
            heap_mb=HEAP_MB,
            log_level="INFO",
            classes=java.compile(JAVA_SOURCES / f"{LINE_SOURCE}.java"),
        )
        self.process = NodeProcess(command, folder / "worker.log", ready=RUNS)

    def create(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or give it this configuration; its tasks may run later."""

        def look() -> bool:
            answered = self._answered(f"/connectors/{connector}/config", config)
            return all(answered["config"].get(key) == value for key, value in config.items())

        self.process.wait_until(look, f"{connector} is created", not_yet=_NOT_YET)

    def worker_of_task(self, connector: str) -> str | None:
        """Return the id of the worker that runs the connector's first task, if one does."""
        try:
            tasks = self._answered(f"/connectors/{connector}/status")["tasks"]
        except _NOT_YET:
            return None
        return next((one["worker_id"] for one in tasks if one["state"] == "RUNNING"), None)

    def _answered(self, path: str, wish: Mapping[str, str] | None = None) -> Any:
        """Return the answer to a GET, or to a PUT where there is something to put."""
        request = urllib.request.Request(
            f"http://{self.worker_id}{path}",
            None if wish is None else json.dumps(wish).encode(),
            {"Content-Type": "application/json"},
            method="GET" if wish is None else "PUT",
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answered:
            return json.load(answered)
