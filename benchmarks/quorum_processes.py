"""Quorums of controllers, each a process of its own with default settings: ours and Kafka's."""

import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.node_start import CLUSTER_ID, SCRIPT_FLAGS, resident_mib, stop
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java
from tests.support.ports import free_ports
from tests.support.resources import processor_seconds

from kvorum.wire.uuid_text import uuid_to_text

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Program:
    """The commands that format a directory and run a node; their arguments are appended."""

    name: str
    format_command: Sequence[str]
    run_command: Sequence[str]


def kvorum() -> Program:
    """Return kvorum, run by the current interpreter."""
    command = [sys.executable, "-m", "kvorum.cli"]
    return Program("kvorum", [*command, "storage", "format"], [*command, "server"])


def kafka(*, heap_gib: int = 1) -> Program:
    """Return real Kafka from its jars, with the flags of its own start script."""
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    flags = [*SCRIPT_FLAGS, f"-Xmx{heap_gib}G", f"-Xms{heap_gib}G"]
    running = [str(java.executable), *flags, "-cp", f"{java.jars}/*", "kafka.Kafka"]
    formatting = java.command("kafka.tools.StorageTool", "format")
    return Program(f"Kafka {REFERENCE_RELEASE}", formatting, running)


class QuorumProcesses:
    """A quorum of controllers; the context formats and starts them, and kills them at its end.

    Controllers that are not in `voter_ids` observe at first; by default all are voters.
    """

    def __init__(
        self,
        program: Program,
        folder: Path,
        *,
        count: int = 3,
        voter_ids: Collection[int] | None = None,
    ) -> None:
        self.program = program
        self.ports = dict(enumerate(free_ports(count), start=1))
        self._voter_ids = frozenset(self.ports if voter_ids is None else voter_ids)
        self._folder = folder
        self._settings: dict[str, str] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        for node_id in self.ports:
            self._format(node_id)
        for node_id in self.ports:
            self.start(node_id)
        return self

    def __exit__(self, *error: object) -> None:
        for node_id in list(self._processes):
            self.kill(node_id)

    @property
    def running(self) -> Mapping[int, str]:
        """The addresses of all running nodes."""
        return {node_id: f"{HOST}:{self.ports[node_id]}" for node_id in self._processes}

    def start(self, node_id: int) -> None:
        """Start a node; its output is appended to a file of its own."""
        with self.output_of(node_id).open("ab") as output:
            self._processes[node_id] = subprocess.Popen(
                [*self.program.run_command, str(self.properties_of(node_id))],
                stdout=output,
                stderr=output,
                cwd=self._folder,
            )

    def kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, node_id: int) -> None:
        stop(self._processes.pop(node_id))

    def configure(self, **settings: str) -> None:
        """Set keys, given with '_' for '.', for every node that is started from now on."""
        self._settings |= {key.replace("_", "."): value for key, value in settings.items()}
        for node_id in self.ports:
            self.properties_of(node_id).write_text(self._properties(node_id))

    def process_id(self, node_id: int) -> int:
        return self._processes[node_id].pid

    def metadata_log(self, node_id: int) -> Path:
        return self._folder / f"data-{node_id}" / "__cluster_metadata-0"

    def properties_of(self, node_id: int) -> Path:
        return self._folder / f"server-{node_id}.properties"

    def output_of(self, node_id: int) -> Path:
        return self._folder / f"node-{node_id}.txt"

    def assert_running(self) -> None:
        """Raise RuntimeError if a node has ended without being stopped."""
        for node_id, process in self._processes.items():
            if process.poll() is not None:
                message = f"node {node_id} ended:\n{self.output_of(node_id).read_text()[-2000:]}"
                raise RuntimeError(message)

    def resident_mib(self, node_id: int) -> float:
        return resident_mib(self.process_id(node_id))

    def processor_seconds(self, node_id: int) -> float:
        return processor_seconds(self.process_id(node_id))

    def _format(self, node_id: int) -> None:
        file = self.properties_of(node_id)
        file.write_text(self._properties(node_id))
        voters = ",".join(
            f"{each}@{HOST}:{port}:{uuid_to_text(bytes([each]) * 16)}"
            for each, port in self.ports.items()
            if each in self._voter_ids
        )
        start = ["--initial-controllers", voters]
        if node_id not in self._voter_ids:
            start = ["--no-initial-controllers"]
        command = [*self.program.format_command, "-t", CLUSTER_ID, *start, "-c", str(file)]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder)

    def _properties(self, node_id: int) -> str:
        listener = f"CONTROLLER://{HOST}:{self.ports[node_id]}"
        servers = ",".join(f"{HOST}:{port}" for port in self.ports.values())
        settings = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": servers,
            "listeners": listener,
            "advertised.listeners": listener,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._folder / f"data-{node_id}"),
            **self._settings,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())
