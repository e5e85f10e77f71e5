"""The steps of a reassignment by the active controller, errors on the way, and what others see."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from tests.node.embedded_cluster import set_config_at
from tests.node.played_leader import PlayedLeader, PlayedReplica
from tests.support.metrics_scrape import reassignment_figures
from tests.support.ports import free_ports
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, let_others_run, wait_for

from kvorum.controller.quorum_description import NO_QUORUM, QuorumDescription
from kvorum.controller.quorum_reassignment.pursuit import quorum_described_by
from kvorum.metadata.api import RequestError
from kvorum.metadata.configs_image import ResourceType
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import SystemClock
from kvorum.node.controller.quorum_controller import QuorumController, QuorumControllerMetrics
from kvorum.node.controller.quorum_reassignment_manager import PAUSE_MS, QuorumReassignmentManager
from kvorum.node.coroutines import Signal, other_work
from kvorum.node.errors import NotControllerError
from kvorum.node.metadata_loader import PublishedImages
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import RaftNode, RaftStoppedError
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.primitives import Message
from kvorum.wire.quorum_reassignment_tag import reassignment_in
from kvorum.wire.uuid_text import uuid_to_text

REFUSALS = 3
OTHER_DISK = bytes([7]) * 16
METADATA = "__cluster_metadata"


class LeadingReplica(PlayedReplica):
    """A replica that leads, and fails as often as a test wants before it describes the quorum."""

    def __init__(self, leader: PlayedLeader, *failures: Exception) -> None:
        super().__init__(leader, leader.replica(1).settings, is_leader=True)
        self.failures = list(failures)
        self.described, self.failed = asyncio.Event(), asyncio.Event()

    def describe_quorum(self) -> QuorumDescription:
        if self.failures:
            self.failed.set()
            raise self.failures.pop(0)
        self.described.set()
        return NO_QUORUM


class RefusingReplica(PlayedReplica):
    """A replica that leads and refuses each change of voters, thrice and more."""

    def __init__(self, leader: PlayedLeader) -> None:
        super().__init__(leader, leader.replica(leader.leader_id).settings, is_leader=True)
        self.runtime = AsyncioRuntime(SystemClock(), thread_name="replica")
        self.refusal_count, self.has_refused_thrice = 0, asyncio.Event()

    def describe_quorum(self) -> QuorumDescription:
        answer = self.leader.describe(DescribeQuorumRequest())
        assert isinstance(answer, DescribeQuorumResponse)
        return quorum_described_by(
            answer.topics[0].partitions[0],
            kraft_version=self.kraft_version,
            committed_voters=self.committed_voters(),
        )

    async def handle_request(
        self, request: Message, *, version: int, listener_name: str
    ) -> AddRaftVoterResponse:
        del version, listener_name
        assert isinstance(request, AddRaftVoterRequest)
        await other_work(self.runtime)
        self.refusal_count += 1
        if self.refusal_count == REFUSALS:
            self.has_refused_thrice.set()
        return AddRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)


class PlayedController:
    """A controller that becomes active when a test says so."""

    def __init__(self, *, is_active: bool) -> None:
        self.measures = QuorumControllerMetrics(0)
        self._active = Signal(AsyncioRuntime(SystemClock(), thread_name="controller"))
        self.is_awaited = asyncio.Event()
        if is_active:
            self._active.set()

    @property
    def is_active(self) -> bool:
        return self._active.is_set

    async def wait_until_active(self, timeout_ms: float) -> bool:
        self.is_awaited.set()
        return await self._active.wait(timeout_ms)

    def activate(self) -> None:
        self._active.set()


def managed(
    leader: PlayedLeader,
    replica: PlayedReplica,
    controller: PlayedController,
    *,
    failure_pause_ms: float = 0,
) -> QuorumReassignmentManager:
    runtime = AsyncioRuntime(SystemClock(), thread_name="manager")
    return QuorumReassignmentManager(
        cast("QuorumController", controller),
        raft=cast("RaftNode", replica),
        loader=leader.loader,
        images=PublishedImages(leader.loader, runtime),
        runtime=runtime,
        outgoing=Outgoing(),
        failure_pause_ms=failure_pause_ms,
    )


@asynccontextmanager
async def running(
    replica: PlayedReplica, controller: PlayedController
) -> AsyncGenerator[QuorumReassignmentManager]:
    """Run a manager under target voters; it closes without an error."""
    replica.leader.want("1,2,3,4")
    manager = managed(replica.leader, replica, controller)
    manager.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield manager
    finally:
        manager.close()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_unexpected_error_is_reported_and_the_steps_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replica = LeadingReplica(PlayedLeader(), KeyError("a bug"), ZeroDivisionError("another"))
    controller = PlayedController(is_active=True)
    async with running(replica, controller):
        await replica.described.wait()
    told = "The reassignment of the quorum failed, and is tried again target_voters=1,2,3,4"
    assert lines(caplog) == [told, told]
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert controller.measures.failure_count == 2


async def test_an_unexpected_error_is_followed_by_a_pause() -> None:
    replica = LeadingReplica(PlayedLeader(), *[KeyError("a bug")] * 9)
    controller = PlayedController(is_active=True)
    manager = managed(replica.leader, replica, controller, failure_pause_ms=3_600_000)
    replica.leader.want("1,2,3,4")
    manager.start()
    await replica.failed.wait()
    await let_others_run()
    manager.close()
    assert (len(replica.failures), controller.measures.failure_count) == (8, 1)


async def test_a_refused_write_is_reported_and_the_steps_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replica = LeadingReplica(PlayedLeader(), RequestError(ErrorCode.POLICY_VIOLATION, "no"))
    async with running(replica, PlayedController(is_active=True)):
        await replica.described.wait()
    assert lines(caplog) == ["A step of the reassignment of the quorum failed"]


async def test_the_end_of_the_leadership_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    replica = LeadingReplica(PlayedLeader(), NotControllerError("no controller"))
    async with running(replica, PlayedController(is_active=True)):
        await replica.described.wait()
    assert lines(caplog) == []


async def test_nothing_is_tried_with_a_replica_that_has_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replica = LeadingReplica(PlayedLeader(), RaftStoppedError("it has failed"), KeyError("a bug"))
    async with running(replica, PlayedController(is_active=True)):
        # Twice the pause between two tries.
        await asyncio.sleep(2 * PAUSE_MS / 1000)
    assert lines(caplog) == []
    assert len(replica.failures) == 1


async def test_a_leader_takes_no_step_before_its_controller_is_active() -> None:
    replica = LeadingReplica(PlayedLeader())
    controller = PlayedController(is_active=False)
    async with running(replica, controller) as manager:
        await let_others_run()
        assert not replica.described.is_set()
        assert manager.describe() is None
        controller.activate()
        await replica.described.wait()
        assert manager.describe() is not None


async def test_a_leader_that_never_becomes_active_gives_way_to_the_next() -> None:
    async with PlayedLeader() as leader:
        replica = LeadingReplica(leader)
        controller = PlayedController(is_active=False)
        async with running(replica, controller):
            await controller.is_awaited.wait()
            replica.is_leader = False
            await leader.until(lambda: leader.steps == ["add 4", "clear"])


async def test_a_controller_that_becomes_active_takes_the_steps_itself() -> None:
    async with PlayedLeader(silent={4}) as leader:
        replica = LeadingReplica(leader)
        replica.is_leader = False
        controller = PlayedController(is_active=False)
        async with running(replica, controller) as manager:
            await leader.until_asked(2)
            assert (manager.describe(), replica.described.is_set()) == (None, False)
            assert manager.describe_as_proxy() is not None
            replica.is_leader = True
            controller.activate()
            await replica.described.wait()
            assert manager.describe_as_proxy() is None
            assert manager.describe() is not None


async def test_without_target_voters_no_node_is_asked() -> None:
    async with PlayedLeader() as leader:
        manager = managed(leader, leader.replica(1), PlayedController(is_active=False))
        manager.start()
        await let_others_run()
        leader.want(None)
        await let_others_run()
        assert (manager.describe(), manager.describe_as_proxy()) == (None, None)
        manager.close()
        assert leader.node.asked == []


async def test_a_step_that_is_refused_again_and_again_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    replica = RefusingReplica(PlayedLeader())
    async with running(replica, PlayedController(is_active=True)):
        await replica.has_refused_thrice.wait()
    assert len([one for one in caplog.records if "Reassigning the quorum" in one.getMessage()]) == 1


def describe(address: str, topic: str = METADATA) -> DescribeQuorumResponse.PartitionData:
    wanted = DescribeQuorumRequest.TopicData(topic, [DescribeQuorumRequest.PartitionData()])
    with RawClient(address) as client:
        response = client.ask(DescribeQuorumRequest([wanted]), DescribeQuorumResponse, 2)
    return response.topics[0].partitions[0]


def told_by(address: str) -> QuorumReassignment | None:
    return reassignment_in(describe(address))


def want(address: str, value: str | None) -> None:
    set_config_at(address, ResourceType.BROKER, "", "kvorum.quorum.target.voters", value)


def test_controller_and_broker_describe_a_reassignment_while_it_lasts() -> None:
    (metrics_port,) = free_ports(1)
    with Cluster(overrides={"kvorum.metrics.listener": f"127.0.0.1:{metrics_port}"}) as cluster:
        listeners = (cluster.controller_servers, cluster.bootstrap_servers)
        before = [describe(address) for address in listeners]
        assert [one.unknown_tagged_fields or None for one in before] == [None, None]
        assert reassignment_figures(metrics_port) == {
            "adding_voters": 0, "removing_voters": 0, "blocked_reason": 0,
        }  # fmt: skip
        want(cluster.bootstrap_servers, f"1:{uuid_to_text(OTHER_DISK)}")
        # The target voters are described at once, and what the reassignment waits for a moment
        # later.
        wait_for(lambda: reassignment_figures(metrics_port)["blocked_reason"], "a step is blocked")
        told = told_by(cluster.controller_servers)
        assert told is not None
        assert told.block_text
        (target,) = told.targets
        assert (target.replica_id, target.replica_directory_id) == (1, OTHER_DISK)
        assert (target.log_end_offset, target.last_fetch_timestamp) == (-1, -1)
        assert told_by(cluster.bootstrap_servers) == told
        assert reassignment_figures(metrics_port) == {
            "adding_voters": 1, "removing_voters": 1, "blocked_reason": told.block_reason,
        }  # fmt: skip
        refused = describe(cluster.controller_servers, topic="other")
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert reassignment_in(refused) is None
        want(cluster.controller_servers, None)
        assert [told_by(address) for address in listeners] == [None, None]
