"""One combined node that carries records, ours or real Kafka, each started as its users do."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from benchmarks.admin_probe import wait_for_first_answer
from benchmarks.node_start import (
    START_SECONDS_MAX,
    Candidate,
    configured,
    resident_mib,
    running,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

WAIT_S = 30.0
NOTHING_ELSE: Final[Mapping[str, str]] = MappingProxyType({})


class RunningBroker(NamedTuple):
    """The addresses of a broker, and its process."""

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
def broker(
    candidate: Candidate, environment: dict[str, str], more: Mapping[str, str] = NOTHING_ELSE
) -> Generator[RunningBroker]:
    """Format a directory, and run the candidate on it with `more` settings than the usual ones."""
    with tempfile.TemporaryDirectory() as name:
        node = configured(candidate, Path(name), more)
        subprocess.run(node.format_command, check=True, capture_output=True, env=environment)
        with running(node.run_command, environment) as process:
            deadline = time.perf_counter() + START_SECONDS_MAX
            wait_for_first_answer(node.address, deadline_seconds=deadline)
            yield RunningBroker(f"{node.address.host}:{node.address.port}", process.pid)
