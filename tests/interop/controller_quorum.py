"""Controllers in processes of their own, ours or real Kafka's, whose voters can change."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kafka.tools import ToolRunner
from tests.interop.kvorum_node import run_kvorum
from tests.unit.node.raw_client import RawClient

from kvorum.storage.java_properties import load_java_properties
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

Kind = Literal["kvorum", "kafka"]
Key = tuple[int, str]
"""A replica: its node id, and the id of its metadata directory."""
NO_DIRECTORY = uuid_to_text(ZERO_UUID)
"""Stands for any directory: voters of a static quorum are known by their node ids alone."""
Found = TypeVar("Found")
PATIENCE_S = 90
STOP_TIMEOUT_S = 30
POLL_INTERVAL_S = 0.05
HEAP_MB = 256
_QUESTION = DescribeQuorumRequest(
    [DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData()])]
)
_WHO_LEADS = DescribeClusterRequest(endpoint_type=2)


@dataclass
class Controller:
    """One controller, and its process while it runs."""

    node_id: int
    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def key(self) -> Key:
        """Who it is, by its directory as it is now."""
        text = (self.data / "meta.properties").read_bytes()
        return self.node_id, load_java_properties(text)["directory.id"]

    def start(self, command: list[str]) -> None:
        with (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self.properties)], stdout=log, stderr=log
            )

    def stop(self) -> int | None:
        """Stop in order; return how it ended, None if it did not run."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.terminate()
        try:
            return process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End it where it stands, if it runs."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()


class ControllerQuorum:
    """Controllers of one kind, each formatted by its kind's own tool; use as a context."""

    def __init__(
        self,
        kind: Kind,
        folder: Path,
        *,
        count: int,
        java: Java,
        tools: ToolRunner,
        format_options: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self._format_options = format_options
        self.cluster_id = run_kvorum("storage", "random-uuid").strip()
        self._tools = tools
        self._command = (
            [sys.executable, "-m", "kvorum.cli", "server"]
            if kind == "kvorum"
            else java.command("kafka.Kafka", heap_mb=HEAP_MB, log_level="INFO")
        )
        self.controllers = {
            node_id: Controller(node_id, port, folder / str(node_id))
            for node_id, port in enumerate(free_ports(count), 1)
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for controller in self.controllers.values():
            if controller.process is not None:
                controller.process.kill()
                controller.process.wait()

    @property
    def addresses(self) -> str:
        """Where to ask: all of them."""
        return ",".join(one.address for one in self.controllers.values())

    def write_settings(self, quorum: Mapping[str, str], *node_ids: int) -> None:
        """Write the server.properties of some controllers, of all if none is named."""
        for node_id in node_ids or self.controllers:
            controller = self.controllers[node_id]
            settings = {
                "process.roles": "controller",
                "node.id": str(controller.node_id),
                "listeners": f"CONTROLLER://{controller.address}",
                "advertised.listeners": f"CONTROLLER://{controller.address}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(controller.data),
                **quorum,
            }
            controller.folder.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{key}={value}\n" for key, value in settings.items())
            controller.properties.write_text(text, encoding="utf-8")

    def write_dynamic_settings(self) -> None:
        """Have the voters found out from whoever answers."""
        self.write_settings({"controller.quorum.bootstrap.servers": self.addresses})

    def form(self, voters: Iterable[int]) -> None:
        """Format everybody, with a first set of voters for some and none for the others."""
        ids = {node_id: run_kvorum("storage", "random-uuid").strip() for node_id in voters}
        listed = ",".join(
            f"{node_id}@{self.controllers[node_id].address}:{directory_id}"
            for node_id, directory_id in ids.items()
        )
        for node_id in self.controllers:
            first = ("--initial-controllers", listed)
            self.format(node_id, *(first if node_id in ids else ("--no-initial-controllers",)))

    def format(self, node_id: int, *options: str) -> None:
        """Format one controller's directory."""
        properties = str(self.controllers[node_id].properties)
        arguments = ("format", "-t", self.cluster_id, "-c", properties, *options)
        arguments += tuple(self._format_options)
        if self.kind == "kvorum":
            run_kvorum("storage", *arguments)
        else:
            done = self._tools.run("kafka-storage", *arguments)
            assert done.exit_code == 0, done.stdout + done.stderr

    def start(self, *node_ids: int) -> None:
        """Start some controllers, all of them if none is named."""
        for node_id in node_ids or self.controllers:
            self.controllers[node_id].start(self._command)

    def wipe(self, node_id: int) -> None:
        """Lose a stopped controller's disk."""
        shutil.rmtree(self.controllers[node_id].data)

    def keys(self, *node_ids: int) -> set[Key]:
        return {self.controllers[node_id].key for node_id in node_ids}

    def described(self) -> DescribeQuorumResponsePartitionData | None:
        """Return what the leader says, None where there is none."""
        for controller in self.controllers.values():
            if controller.process is None:
                continue
            try:
                with RawClient(controller.address) as client:
                    answer = client.ask(_QUESTION, DescribeQuorumResponse, 2)
            except (OSError, AssertionError):
                continue
            partition = answer.topics[0].partitions[0] if answer.topics else None
            if partition is not None and partition.error_code == 0:
                return partition
        return None

    def settled(
        self, voters: set[Key], observers: AbstractSet[Key] = frozenset()
    ) -> DescribeQuorumResponsePartitionData:
        """Wait until exactly these are voters, these are observers, and all follow a leader.

        Every process has to tell clients so, which it can once it has read some metadata.

        Whoever has no process, or has lost the directory, is not waited for.
        """
        running = [one for one in self.controllers.values() if one.process is not None]
        present = {key for one in running for key in (one.key, (one.node_id, NO_DIRECTORY))}

        def look() -> DescribeQuorumResponsePartitionData | None:
            found = self.described()
            if found is None or found.high_watermark <= 0:
                return None
            states = {
                (state.replica_id, uuid_to_text(state.replica_directory_id)): state.log_end_offset
                for state in (*found.current_voters, *found.observers)
            }
            current = {key for key, _ in zip(states, found.current_voters, strict=False)}
            awaited = (voters | observers) & present
            follows = all(states.get(key, 0) >= found.high_watermark for key in awaited)
            is_so = current == voters and follows and self._all_name(found.leader_id)
            return found if is_so else None

        return wait_for(look, lambda: f"{voters} and {observers} instead of {self.described()}")

    def _all_name(self, leader_id: int) -> bool:
        """Tell whether every process answers clients, and names this leader."""
        for controller in self.controllers.values():
            if controller.process is None:
                continue
            try:
                with RawClient(controller.address) as client:
                    answer = client.ask(_WHO_LEADS, DescribeClusterResponse, 1)
            except (OSError, AssertionError):
                return False
            if (answer.error_code, answer.controller_id) != (ErrorCode.NONE, leader_id):
                return False
        return True


def wait_for(look: Callable[[], Found | None], what: Callable[[], str]) -> Found:
    """Wait until something is found."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"still not so: {what()}"
        time.sleep(POLL_INTERVAL_S)
    return found
