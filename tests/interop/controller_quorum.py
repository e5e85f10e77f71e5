"""Controllers in processes of their own, ours or real Kafka's, whose voters can change."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import COMBINED, NO_VOTERS, Key, Kind, Node
from tests.support.node_process import run_kvorum
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

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

NO_DIRECTORY = uuid_to_text(ZERO_UUID)
"""Stands for any directory: voters of a static quorum are known by their node ids alone."""
_QUESTION = DescribeQuorumRequest(
    [DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData()])]
)
_WHO_LEADS = DescribeClusterRequest(endpoint_type=2)


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
        self.kind: Kind = kind
        self._format_options = format_options
        self.cluster_id = run_kvorum("storage", "random-uuid").strip()
        self._tools = tools if kind == "kafka" else None
        self.controllers = {
            node_id: Node(
                folder / str(node_id),
                {"process.roles": "controller"},
                node_id=node_id,
                java=java if kind == "kafka" else None,
            )
            for node_id in range(1, count + 1)
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
            controller.kill()

    @property
    def addresses(self) -> str:
        """Where to ask: all of them."""
        return ",".join(one.address for one in self.controllers.values())

    def write_settings(self, quorum: Mapping[str, str], *node_ids: int) -> None:
        """Write the server.properties of some controllers, of all if none is named."""
        for node_id in node_ids or self.controllers:
            self.controllers[node_id].configure(quorum)

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
            self.format(node_id, *(first if node_id in ids else NO_VOTERS))

    def format(self, node_id: int, *options: str) -> None:
        """Format one controller's directory."""
        self.controllers[node_id].format(
            (*options, *self._format_options), cluster_id=self.cluster_id, tools=self._tools
        )

    def start(self, *node_ids: int) -> None:
        """Start some controllers, all of them if none is named."""
        for node_id in node_ids or self.controllers:
            self.controllers[node_id].launch()

    def wipe(self, node_id: int) -> None:
        """Lose a stopped controller's disk."""
        shutil.rmtree(self.controllers[node_id].data)

    def keys(self, *node_ids: int) -> set[Key]:
        return {self.controllers[node_id].key for node_id in node_ids}

    def described(self) -> DescribeQuorumResponsePartitionData | None:
        """Return what the leader says, None where there is none."""
        for controller in self.controllers.values():
            if not controller.process.is_launched:
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
        running = [one for one in self.controllers.values() if one.process.is_launched]
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

        return wait_for(
            look,
            f"the voters are {voters}, the observers {observers}, and all follow the leader",
            otherwise=lambda: f"{self.described()}\n{self.last_words()}",
        )

    def last_words(self) -> str:
        """Return the end of what each controller has said: what a failure shows."""
        return "\n".join(one.process.last_words() for one in self.controllers.values())

    def _all_name(self, leader_id: int) -> bool:
        """Tell whether every process answers clients, and names this leader."""
        for controller in self.controllers.values():
            if not controller.process.is_launched:
                continue
            try:
                with RawClient(controller.address) as client:
                    answer = client.ask(_WHO_LEADS, DescribeClusterResponse, 1)
            except (OSError, AssertionError):
                return False
            if (answer.error_code, answer.controller_id) != (ErrorCode.NONE, leader_id):
                return False
        return True


def write_settings_with_a_broker(quorum: ControllerQuorum) -> str:
    """Make the first node a broker as well, and return where it listens as one."""
    quorum.write_dynamic_settings()
    bootstrap = {"controller.quorum.bootstrap.servers": quorum.addresses}
    quorum.write_settings({**bootstrap, "process.roles": COMBINED}, 1)
    return quorum.controllers[1].broker


def registered_controllers(address: str) -> set[int]:
    with RawClient(address) as client:
        response = client.ask(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 1)
    return {one.broker_id for one in response.brokers}
