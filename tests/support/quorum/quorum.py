"""A quorum of controllers, ours or real Kafka's, each in a process of its own."""

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self, TypeAlias, TypeVar

from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import NO_VOTERS, Key, Kind, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

Described: TypeAlias = DescribeQuorumResponse.PartitionData
_Found = TypeVar("_Found")
NO_DIRECTORY: Final = uuid_to_text(ZERO_UUID)
"""Stands for any directory: voters of a static quorum are known by their node ids alone."""
ASK_TIMEOUT_S: Final = 2.0
_QUESTION: Final = DescribeQuorumRequest(
    [DescribeQuorumRequest.TopicData("__cluster_metadata", [DescribeQuorumRequest.PartitionData()])]
)


class Quorum:
    """Controllers, each formatted by its kind's own tool; use as a context, that none outlives.

    They know of each other by one setting: all of them are bootstrap servers.
    """

    def __init__(self, members: Iterable[Node], tools: ToolRunner | None = None) -> None:
        self.members = {one.node_id: one for one in members}
        self._tools = tools
        self.configure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            member.kill()

    @property
    def addresses(self) -> str:
        return ",".join(one.controller for one in self.members.values())

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(map(self.advertised, self.members))

    def advertised(self, node_id: int) -> str:
        return self.members[node_id].controller

    def configure(self, changes: Mapping[str, str] = MappingProxyType({}), *node_ids: int) -> None:
        """Write the server.properties of some members, of all if none is named."""
        is_static = "controller.quorum.voters" in changes
        known = {"controller.quorum.bootstrap.servers": self.bootstrap_servers}
        known = {} if is_static else known
        for node_id in node_ids or self.members:
            self.members[node_id].configure({**known, **changes})

    def static_voters(self, *node_ids: int) -> dict[str, str]:
        """Return the setting by which these are static voters."""
        listed = ",".join(f"{node_id}@{self.advertised(node_id)}" for node_id in node_ids)
        return {"controller.quorum.voters": listed}

    def form(self, voters: Collection[int] | None, *options: str) -> None:
        """Format everybody: the first voters, and the others as observers.

        Without a set of voters they are static ones.
        """
        listed = ",".join(
            f"{node_id}@{self.advertised(node_id)}:{uuid_to_text(bytes([node_id]) * 16)}"
            for node_id in voters or ()
        )

        def format_one(node_id: int) -> None:
            known = ("--initial-controllers", listed) if node_id in (voters or ()) else NO_VOTERS
            self.format(node_id, *(() if voters is None else known), *options)

        # All of Kafka's tools run in one process, one by one.
        with ThreadPoolExecutor(2 if self._tools is None else 1) as pool:
            list(pool.map(format_one, self.members))

    def format(self, node_id: int, *options: str) -> None:
        """Format one member's directory; that of a static voter without options."""
        member = self.members[node_id]
        member.format(options, tools=None if member.kind == "kvorum" else self._tools)

    def start(self, *node_ids: int) -> None:
        """Start some members, all of them if none is named; return before they take part."""
        for node_id in node_ids or self.members:
            self.members[node_id].launch()

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.members[node_id].kill()

    def wipe(self, node_id: int) -> None:
        """Give a member that does not run an empty disk, formatted again and without voters."""
        shutil.rmtree(self.members[node_id].data)
        self.format(node_id, *NO_VOTERS)

    def keys(self, *node_ids: int) -> set[Key]:
        return {self.members[node_id].key for node_id in node_ids}

    def described(self) -> Described | None:
        """Return what the leader with the highest epoch says, or None without a leader."""
        told = map(describe, self._running())
        leading = [answer for answer in told if answer is not None]
        return max(leading, key=lambda answer: answer.leader_epoch, default=None)

    def leader(self) -> Node:
        """Return the member that leads, once there is one."""
        return self.members[self.wait_for(self.described, "somebody leads").leader_id]

    def wait_for(self, look: Callable[[], _Found | None], state: str) -> _Found:
        """Wait for a state; where it never comes about, tell what the members said last."""
        return wait_for(look, state, otherwise=self.last_words)

    def until(self, state: str, holds: Callable[[Described], bool]) -> Described:
        """Return what the leader says of the quorum once that `holds`."""

        def look() -> Described | None:
            found = self.described()
            return found if found is not None and holds(found) else None

        return self.wait_for(look, state)

    def settled(self, voters: set[Key], observers: AbstractSet[Key] = frozenset()) -> Described:
        """Wait until exactly these are voters, these are observers, and all follow a leader.

        Every process has to tell clients so, which it can once it has read some metadata.

        Whoever has no process, or has lost the directory, is not waited for.
        """
        present = {key for one in self._running() for key in (one.key, (one.node_id, NO_DIRECTORY))}

        def is_so(found: Described) -> bool:
            states = {
                (state.replica_id, uuid_to_text(state.replica_directory_id)): state.log_end_offset
                for state in (*found.current_voters, *found.observers)
            }
            current = {key for key, _ in zip(states, found.current_voters, strict=False)}
            awaited = (voters | observers) & present
            follows = all(states.get(key, 0) >= found.high_watermark > 0 for key in awaited)
            return current == voters and follows and self._all_name(found.leader_id)

        return self.until(
            f"the voters are {voters}, the observers {observers}, and all follow the leader", is_so
        )

    def wait_until_settled(self) -> int:
        """Return the end of the log once all that run have it, and all of it is committed."""
        return self.settled_logs().high_watermark

    def settled_logs(self) -> Described:
        """Return what the leader says once all that run have its log, all of it committed."""

        def is_so(found: Described) -> bool:
            states = {one.replica_id: one for one in (*found.observers, *found.current_voters)}
            running = {one.node_id for one in self._running()}
            return running <= states.keys() and {found.high_watermark} == {
                states[node_id].log_end_offset for node_id in running
            }

        return self.until("the logs of all come to the same end", is_so)

    def last_words(self) -> str:
        """Return what the leader says and the end of what each has said: what a failure shows."""
        said = (
            f"controller {node_id}: {member.process.last_words()}"
            for node_id, member in self.members.items()
        )
        return "\n".join((str(self.described()), *said))

    def _running(self) -> list[Node]:
        """Return the members that have a process which answers."""
        return [one for one in self.members.values() if one.process.is_launched]

    def _all_name(self, leader_id: int) -> bool:
        """Tell whether every process answers clients, and names this leader."""
        for member in self._running():
            try:
                answer = _registrations(member.controller)
            except (OSError, AssertionError):
                return False
            if (answer.error_code, answer.controller_id) != (ErrorCode.NONE, leader_id):
                return False
        return True


def controllers(
    folder: Path,
    node_ids: Iterable[int],
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    java: Java | None = None,
) -> list[Node]:
    """Return controllers of one kind, each in a folder of its own."""
    own = {"process.roles": "controller", **settings}
    return [Node(folder / str(one), own, node_id=one, java=java) for one in node_ids]


def quorum_of(
    kind: Kind,
    folder: Path,
    count: int,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    java: Java,
    tools: ToolRunner,
) -> Quorum:
    """Return a quorum of one kind with the node ids from 1 on, neither formatted nor started."""
    runs_on = java if kind == "kafka" else None
    return Quorum(controllers(folder, range(1, count + 1), settings, java=runs_on), tools)


MakeQuorum = Callable[..., Quorum]
"""Makes a quorum in a folder of its own: takes the kind, the count and the settings."""


def describe(member: Node) -> Described | None:
    """Ask a controller how the quorum is doing; None where it does not lead or answer."""
    try:
        with RawClient(member.controller) as client:
            client.socket.settimeout(ASK_TIMEOUT_S)
            response = client.ask(_QUESTION, DescribeQuorumResponse, 2)
    except (OSError, AssertionError):
        return None
    # A replica that has stopped says so of the whole.
    partition = response.topics[0].partitions[0] if response.topics else None
    return partition if partition is not None and partition.error_code == 0 else None


def voter_ids(found: Described) -> set[int]:
    return {state.replica_id for state in found.current_voters}


def registered_controllers(address: str) -> set[int]:
    return {one.broker_id for one in _registrations(address).brokers}


def _registrations(address: str) -> DescribeClusterResponse:
    with RawClient(address) as client:
        return client.ask(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 1)
