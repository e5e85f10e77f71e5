"""A quorum of controllers, each a process of its own with a directory of its own."""

import re
import shutil
import signal
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from tests.support.node import CLUSTER_ID, LOG_DIRECTORY
from tests.support.node_process import (
    Ended,
    NodeProcess,
    kvorum_server,
    run_kvorum,
    write_properties,
)
from tests.support.ports import free_ports
from tests.support.quorum.network import Network
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

Found = TypeVar("Found")
ASK_TIMEOUT_S = 2.0
# Quick, and still slow enough for a machine that does other things as well.
TIMES: Final = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
}


@dataclass(slots=True)
class Member:
    """One controller: where it is, and its process."""

    node_id: int
    folder: Path
    port: int
    advertised_port: int
    directory_id: bytes
    process: NodeProcess
    is_running: bool = False
    is_paused: bool = False

    @property
    def address(self) -> str:
        """Where clients ask it, past the proxy."""
        return f"127.0.0.1:{self.port}"

    @property
    def advertised(self) -> str:
        """Where other controllers ask it."""
        return f"127.0.0.1:{self.advertised_port}"

    @property
    def properties(self) -> Path:
        """Its server.properties."""
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.folder / "data"

    @property
    def log_folder(self) -> Path:
        """The directory of its metadata log."""
        return self.data / LOG_DIRECTORY


class Quorum:
    """So many controllers with a network between them; as a context they run, but for `absent`.

    The `observers` of a dynamic quorum are controllers that are no voters at first.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        *,
        is_dynamic: bool,
        settings: Mapping[str, str] | None = None,
        absent: Collection[int] = (),
        observers: Collection[int] = (),
    ) -> None:
        ports = free_ports(2 * count)
        self.is_dynamic = is_dynamic
        self.members: dict[int, Member] = {}
        for node_id in range(1, count + 1):
            place = folder / f"controller-{node_id}"
            self.members[node_id] = Member(
                node_id=node_id,
                folder=place,
                port=ports.pop(),
                advertised_port=ports.pop(),
                directory_id=bytes([node_id]) * 16,
                process=kvorum_server(place / "server.properties"),
            )
        self.network = Network(
            {one.node_id: one.port for one in self.members.values()},
            {one.node_id: one.advertised_port for one in self.members.values()},
        )
        self._settings = dict(settings or {})
        self._absent = absent
        self._observers = observers

    def __enter__(self) -> Self:
        self.network.__enter__()
        try:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(self._format, self.members.values()))
            for member in self.members.values():
                if member.node_id not in self._absent:
                    self.start(member)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.members.values():
            if member.is_running:
                member.process.kill()
                member.is_running = False
        self.network.__exit__(kind, error, trace)

    @property
    def majority(self) -> int:
        """How many controllers decide."""
        return len(self.members) // 2 + 1

    def start(self, member: Member) -> None:
        """Start a controller that does not run; returns before it takes part."""
        self.network.listen(member.node_id)
        member.process.launch()
        member.is_running = True

    def kill(self, member: Member) -> Ended:
        """End a controller by SIGKILL."""
        # Nobody listens any more at the moment when its connections break.
        self.network.refuse(member.node_id)
        return self._end(member, signal.SIGKILL)

    def stop(self, member: Member) -> Ended:
        """End a controller as an operator does."""
        ended = self._end(member, signal.SIGTERM)
        self.network.refuse(member.node_id)
        return ended

    def wait_for_end(self, member: Member) -> Ended:
        """Return how a controller ended that ends by itself."""
        ended = member.process.wait()
        member.is_running = False
        self.network.refuse(member.node_id)
        return ended

    def _end(self, member: Member, number: signal.Signals) -> Ended:
        member.process.send(number)
        ended = member.process.wait()
        member.is_running = member.is_paused = False
        return ended

    def pause(self, member: Member) -> None:
        """Let a controller stand still."""
        member.process.send(signal.SIGSTOP)
        member.is_paused = True

    def resume(self, member: Member) -> None:
        """Let a controller that stands still go on."""
        member.process.send(signal.SIGCONT)
        member.is_paused = False

    def leader(self) -> DescribeQuorumResponsePartitionData | None:
        """Return what the leader with the highest epoch says; None where nobody leads."""
        able = (one for one in self.members.values() if one.is_running and not one.is_paused)
        told = map(describe, able)
        leading = [answer for answer in told if answer is not None]
        return max(leading, key=lambda answer: answer.leader_epoch, default=None)

    def wait_for(self, look: Callable[[], Found | None], state: str) -> Found:
        """Wait for a state; where it never comes about, tell what the members said last."""
        return wait_for(look, state, otherwise=self._last_words)

    def _last_words(self) -> str:
        return "\n".join(
            f"controller {node_id}: {member.process.last_words()}"
            for node_id, member in self.members.items()
        )

    def wait_for_leader(self) -> Member:
        """Return the member that leads, once there is one."""
        return self.members[self.wait_for(self.leader, "somebody leads").leader_id]

    def wait_until_settled(self) -> int:
        """Return the end of the log once all have it, and all of it is committed."""

        def find() -> int | None:
            answer = self.leader()
            if answer is None or len(answer.current_voters) != len(self.members):
                return None
            ends = {
                state.log_end_offset
                for state in answer.current_voters
                if self.members[state.replica_id].is_running
            }
            return answer.high_watermark if ends == {answer.high_watermark} else None

        return self.wait_for(find, "the logs of all come to the same end")

    def kill_all_at_once(self) -> None:
        """End all of them before one can act on the end of another."""
        for member in self.members.values():
            self.pause(member)
        for member in self.members.values():
            self.kill(member)

    def wipe(self, member: Member, *format_options: str) -> None:
        """Give a controller that does not run an empty disk, formatted anew."""
        assert not member.is_running
        shutil.rmtree(member.data)
        properties = str(member.properties)
        run_kvorum(
            "storage", "format", "--cluster-id", CLUSTER_ID, "--config", properties, *format_options
        )
        found = re.search(r"^directory\.id=(\S+)$", _meta_properties(member), re.MULTILINE)
        assert found is not None
        member.directory_id = uuid_from_text(found[1])

    def _format(self, member: Member) -> None:
        member.folder.mkdir(parents=True, exist_ok=True)
        write_properties(member.properties, self.settings_of(member))
        arguments = ["--cluster-id", CLUSTER_ID, "--config", str(member.properties)]
        if member.node_id in self._observers:
            arguments += ["--no-initial-controllers"]
        elif self.is_dynamic:
            first = [one for one in self.members.values() if one.node_id not in self._observers]
            arguments += ["--initial-controllers", ",".join(map(_voter, first))]
        run_kvorum("storage", "format", *arguments)

    def settings_of(self, member: Member) -> dict[str, str]:
        """Return the server.properties of a member."""
        voters = list(self.members.values())
        key, entries = "voters", [f"{one.node_id}@{one.advertised}" for one in voters]
        if self.is_dynamic:
            key, entries = "bootstrap.servers", [one.advertised for one in voters]
        return {
            "process.roles": "controller",
            "node.id": str(member.node_id),
            f"controller.quorum.{key}": ",".join(entries),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{member.address}",
            "advertised.listeners": f"CONTROLLER://{member.advertised}",
            "log.dirs": str(member.data),
            # No records but those that somebody asks for.
            "metadata.max.idle.interval.ms": "0",
            # What takes the place of a broker is never fenced.
            "broker.session.timeout.ms": "3600000",
            **TIMES,
            **self._settings,
        }


def _meta_properties(member: Member) -> str:
    return (member.data / "meta.properties").read_text(encoding="utf-8")


def _voter(member: Member) -> str:
    return f"{member.node_id}@{member.advertised}:{uuid_to_text(member.directory_id)}"


def describe(member: Member) -> DescribeQuorumResponsePartitionData | None:
    """Ask a controller how the quorum is doing; None where it does not lead or answer."""
    topic = DescribeQuorumRequestTopicData(
        "__cluster_metadata", [DescribeQuorumRequestPartitionData()]
    )
    try:
        with RawClient(member.address) as client:
            client.socket.settimeout(ASK_TIMEOUT_S)
            response = client.ask(DescribeQuorumRequest([topic]), DescribeQuorumResponse, 2)
    except (OSError, AssertionError):
        return None
    # A replica that has stopped says so of the whole.
    partition = response.topics[0].partitions[0] if response.topics else None
    return partition if partition is not None and partition.error_code == 0 else None
