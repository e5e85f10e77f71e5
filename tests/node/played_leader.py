"""A leader that a test plays: it answers as a real controller, which knows no target voters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Self, cast

from tests.support.fake_node import HOST, FakeNode
from tests.support.waiting import wait_for_event

from kvorum.metadata.address import Address
from kvorum.metadata.record_frame import encode_record
from kvorum.metadata.voters import VoterKey
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import SystemClock
from kvorum.node.controller.quorum_controller import QuorumController, QuorumControllerMetrics
from kvorum.node.controller.quorum_reassignment_proxy import QuorumReassignmentProxy
from kvorum.node.coroutines import Signal
from kvorum.node.metadata_loader import MetadataLoader, PublishedImages
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import CommittedBatch, RaftNode, RaftSettings
from kvorum.raft.config import RaftConfig
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.primitives import Message
from kvorum.wire.quorum_reassignment_tag import add_reassignment

KEY = "kvorum.quorum.target.voters"
ELECTION_TIMEOUT_MS = 100
CONFIG = RaftConfig(election_timeout_ms=ELECTION_TIMEOUT_MS)


def directory(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def key(node_id: int) -> VoterKey:
    return VoterKey(node_id, directory(node_id))


@dataclass
class PlayedReplica:
    """A replica as far as the one who takes steps looks at it."""

    leader: PlayedLeader
    settings: RaftSettings
    kraft_version: int = 1
    is_leader: bool = False
    epochs_behind: int = 0
    has_committed_voters: bool = True

    @property
    def epoch(self) -> int:
        return self.leader.epoch - self.epochs_behind

    def leader_endpoint(self) -> Address:
        return Address(HOST, self.leader.node.port)

    def committed_voters(self) -> frozenset[VoterKey] | None:
        return frozenset(map(key, self.leader.voters)) if self.has_committed_voters else None


@dataclass
class PlayedLeader:
    """Node 2, which leads the voters 1, 2 and 3; all other replicas observe. Use as a context.

    When the leader is removed, the lowest id of the voters leads, at the same address. `steps` are
    the changes that were asked for and made, `refused` those that were not.
    """

    voters: set[int] = field(default_factory=lambda: {1, 2, 3})
    replicas: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    silent: set[int] = field(default_factory=set[int])
    leader_id: int = 2
    epoch: int = 7
    acts_itself: bool = False
    answer: Callable[[Message], int] = lambda _: ErrorCode.NONE
    uncommitted: int = 0
    steps: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.loader = MetadataLoader()
        self._asked = asyncio.Event()
        for node_id in self.replicas:
            endpoint = RegisterControllerRecord.ControllerEndpoint(
                "CONTROLLER", f"c{node_id}", 9093, 0
            )
            self.commit(RegisterControllerRecord(node_id, directory(node_id), False, [endpoint]))
        self.node = FakeNode(
            DescribeQuorum=self.describe,
            AddRaftVoter=self._add,
            RemoveRaftVoter=self._remove,
            IncrementalAlterConfigs=self._clear,
        )

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.node.__aexit__()

    def commit(self, record: Message) -> None:
        """Commit a record, in the log of everybody at once."""
        offset = self.loader.last_offset + 1
        batch = CommittedBatch(
            base_offset=offset,
            last_offset=offset,
            epoch=self.epoch,
            append_timestamp_ms=0,
            values=(encode_record(record, 0),),
            is_control=False,
            size_bytes=1,
        )
        self.loader.commit([batch])

    def want(self, value: str | None) -> None:
        self.commit(ConfigRecord(resource_type=4, resource_name="", name=KEY, value=value))

    def replica(self, node_id: int) -> PlayedReplica:
        settings = RaftSettings(
            node_id=node_id,
            cluster_id="cluster",
            directory_id=directory(node_id),
            directory=Path(),
            can_vote=True,
            controller_listener="CONTROLLER",
            raft=CONFIG,
        )
        return PlayedReplica(self, settings)

    def proxy(self, node_id: int, replica: PlayedReplica | None = None) -> QuorumReassignmentProxy:
        """Return the proxy of another node, whose controller is not active."""
        runtime = AsyncioRuntime(SystemClock(), thread_name="proxy")
        controller = SimpleNamespace(
            is_active=False,
            wait_until_active=Signal(runtime).wait,
            measures=QuorumControllerMetrics(0),
        )
        return QuorumReassignmentProxy(
            cast("QuorumController", controller),
            raft=cast("RaftNode", replica or self.replica(node_id)),
            loader=self.loader,
            images=PublishedImages(self.loader, runtime),
            runtime=runtime,
            outgoing=Outgoing(),
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        await wait_for_event(
            self._asked,
            condition,
            "a request makes it so",
            otherwise=lambda: (self.steps, self.refused, self.node.asked),
        )

    async def until_asked(self, times: int) -> None:
        """Wait until the leader has described the quorum so many more times."""
        wanted = self.node.times_asked("DescribeQuorum") + times
        await self.until(lambda: self.node.times_asked("DescribeQuorum") >= wanted)

    def _state(self, node_id: int, end_offset: int) -> DescribeQuorumResponse.ReplicaState:
        fetched_ms = -1 if node_id in self.silent else SystemClock().wall_ms()
        return DescribeQuorumResponse.ReplicaState(
            node_id, directory(node_id), end_offset, fetched_ms, fetched_ms
        )

    def describe(self, request: Message) -> Message:
        del request
        self._asked.set()
        end_offset = self.loader.last_offset + 1 + self.uncommitted
        observers = [one for one in self.replicas if one not in self.voters]
        partition = DescribeQuorumResponse.PartitionData(
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            high_watermark=end_offset,
            current_voters=[self._state(one, end_offset) for one in sorted(self.voters)],
            observers=[self._state(one, end_offset) for one in observers],
        )
        if self.acts_itself:
            add_reassignment(partition, QuorumReassignment([], 0, ""))
        topic = DescribeQuorumResponse.TopicData("__cluster_metadata", [partition])
        return DescribeQuorumResponse(topics=[topic])

    def _taken(self, request: Message, step: str) -> int:
        self._asked.set()
        code = self.answer(request)
        (self.refused if code else self.steps).append(step)
        return code

    def _add(self, request: Message) -> Message:
        assert isinstance(request, AddRaftVoterRequest)
        assert request.voter_directory_id == directory(request.voter_id)
        assert [one.host for one in request.listeners] == [f"c{request.voter_id}"]
        code = self._taken(request, f"add {request.voter_id}")
        if not code:
            self.voters.add(request.voter_id)
        return AddRaftVoterResponse(error_code=code)

    def _remove(self, request: Message) -> Message:
        assert isinstance(request, RemoveRaftVoterRequest)
        assert request.voter_directory_id == directory(request.voter_id)
        code = self._taken(request, f"remove {request.voter_id}")
        if not code:
            self.voters.remove(request.voter_id)
            if request.voter_id == self.leader_id:
                self.leader_id, self.epoch = min(self.voters), self.epoch + 1
        return RemoveRaftVoterResponse(error_code=code)

    def _clear(self, request: Message) -> Message:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        (resource,) = request.resources
        (config,) = resource.configs
        assert (resource.resource_type, resource.resource_name) == (4, "")
        assert (config.name, config.config_operation, config.value) == (KEY, 1, None)
        code = self._taken(request, "clear")
        if not code:
            self.want(None)
        result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(code, None, 4, "")
        return IncrementalAlterConfigsResponse(responses=[result])
