"""One combined node that carries records, ours or real Kafka, each started as its users do."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.admin_probe import Address, wait_for_first_answer
from benchmarks.node_start import Candidate, resident_mib, running, settings
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.interop.kafka.server import free_ports

START_S = 60.0
WAIT_S = 30.0


class RunningBroker(NamedTuple):
    """Where the broker listens, and its process."""

    servers: str
    process_id: int

    @property
    def memory_mib(self) -> float:
        """The resident memory at this moment."""
        return resident_mib(self.process_id)

    def create_topic(self, name: str) -> None:
        """Create a topic with one partition."""
        # The stub of create_topics leaves out type parameters.
        admin: Any = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.create_topics([NewTopic(name, 1, 1)]).values():
            future.result(WAIT_S)


@contextmanager
def broker(candidate: Candidate, environment: dict[str, str]) -> Generator[RunningBroker]:
    """Format a directory, and run the candidate on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port, controller_port = free_ports(2)
        file = folder / "server.properties"
        file.write_text(settings(folder, broker_port=port, controller_port=controller_port))
        words = {"{file}": str(file), "{port}": str(port)}
        format_command, run_command = (
            [words.get(word, word) for word in command]
            for command in (candidate.format_command, candidate.run_command)
        )
        subprocess.run(format_command, check=True, capture_output=True, env=environment)
        with running(run_command, environment) as process:
            deadline = time.perf_counter() + START_S
            wait_for_first_answer(Address("127.0.0.1", port), deadline_seconds=deadline)
            yield RunningBroker(f"127.0.0.1:{port}", process.pid)
