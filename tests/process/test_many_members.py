"""5,000 members of groups, each on a connection: of one group, and of a group each."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeVar

import pytest
from tests.process.bystander import WORK_MAX_S, Bystander
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient
from tests.support.resources import Memory, wait_until_quiet
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kvorum.wire.primitives import Message

MEMBERS: Final = 5_000
SUBSCRIPTION: Final = b"\0\0\0\0\0\x01\0\x05topic\xff\xff\xff\xff"
ASSIGNMENT: Final = b"\0\0\0\0\0\x01\0\x05topic\0\0\0\x01\0\0\0\0\xff\xff\xff\xff"
JOIN, SYNC, BEAT, LEAVE = 3, 3, 3, 5
"""The versions of the requests. In this one of JoinGroup a member joins with one request."""
TIMEOUT_MS: Final = 600_000
IDLE_S: Final = 3.0
BYTES_EACH_MAX: Final = 24 * 1024
MIB: Final = 2**20
Response = TypeVar("Response", bound=Message)


@pytest.fixture
def node(formatted: Node, tmp_path: Path) -> Node:
    """A node whose groups wait for their first members, as they do by default."""
    return formatted.copy_to(tmp_path / "node", settings={})


class Member:
    """A client that joins a group."""

    def __init__(self, client: RawClient, group: str) -> None:
        self.client = client
        self.group = group
        self.joined = JoinGroupResponse()

    def join(self) -> None:
        protocol = JoinGroupRequestProtocol("range", SUBSCRIPTION)
        request = JoinGroupRequest(
            self.group,
            TIMEOUT_MS,
            TIMEOUT_MS,
            self.joined.member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.client.send(request, JOIN)

    def sync(self) -> None:
        """Ask for an assignment; the leader says what all of them are."""
        assignments = [
            SyncGroupRequestAssignment(one.member_id, ASSIGNMENT) for one in self.joined.members
        ]
        request = SyncGroupRequest(
            self.group, self.joined.generation_id, self.joined.member_id, assignments=assignments
        )
        self.client.send(request, SYNC)

    def beat(self) -> None:
        self.client.send(
            HeartbeatRequest(self.group, self.joined.generation_id, self.joined.member_id), BEAT
        )

    def leave(self) -> None:
        identity = LeaveGroupRequest.MemberIdentity(self.joined.member_id)
        self.client.send(LeaveGroupRequest(self.group, members=[identity]), LEAVE)


def _rebalance(members: list[Member]) -> None:
    """Have all members join, sync, and send a heartbeat."""
    for member in members:
        member.join()
    for member in members:
        member.joined = member.client.response(JoinGroupResponse, JOIN)
        assert member.joined.error_code == ErrorCode.NONE
    for member in members:
        member.sync()
    for member in members:
        synced = member.client.response(SyncGroupResponse, SYNC)
        assert (synced.error_code, bytes(synced.assignment)) == (ErrorCode.NONE, ASSIGNMENT)
    for member in members:
        member.beat()
    for member in members:
        assert member.client.response(HeartbeatResponse, BEAT).error_code == ErrorCode.NONE


def _wait_for_coordinator(address: str) -> None:
    def is_there() -> bool:
        request = FindCoordinatorRequest(coordinator_keys=["one"])
        found = client.ask(request, FindCoordinatorResponse, 4).coordinators
        described = client.ask(DescribeGroupsRequest(["one"]), DescribeGroupsResponse, 5).groups
        codes = {one.error_code for one in found} | {one.error_code for one in described}
        return codes == {ErrorCode.NONE}

    with RawClient(address) as client:
        wait_for(is_there, "groups are coordinated")


@pytest.fixture
def connections(connection_count: int) -> Iterator[ExitStack]:
    """The connections of members; as many as a process may have."""
    if connection_count < MEMBERS:
        pytest.skip(f"a process may have {connection_count} connections only")
    with ExitStack() as stack:
        yield stack


@pytest.mark.slow
@pytest.mark.parametrize("group_count", [1, MEMBERS])
def test_many_members(
    report: Report, node: Node, running: NodeProcess, connections: ExitStack, group_count: int
) -> None:
    _wait_for_coordinator(node.broker)
    memory = Memory(running.pid)
    before = memory.resident_bytes()
    members = [
        Member(connections.enter_context(RawClient(node.broker)), f"group-{number % group_count}")
        for number in range(MEMBERS)
    ]
    took: list[float] = []
    with Bystander(node.broker, running.pid) as bystander:
        for _ in range(2):
            started = time.monotonic()
            _rebalance(members)
            took.append(time.monotonic() - started)
        with RawClient(node.broker) as client:
            listed = client.ask(ListGroupsRequest(), ListGroupsResponse, 4).groups
            assert [one.group_state for one in listed] == ["Stable"] * group_count
            names = [f"group-{number}" for number in range(group_count)]
            described = client.ask(DescribeGroupsRequest(names), DescribeGroupsResponse, 5).groups
            assert sum(len(one.members) for one in described) == MEMBERS
        busy = wait_until_quiet(running.pid, IDLE_S)
        for member in members:
            member.leave()
        for member in members:
            assert member.client.response(LeaveGroupResponse, LEAVE).error_code == ErrorCode.NONE
    grown = memory.peak_bytes() - before
    report(
        f"{MEMBERS} members of {group_count} groups joined, synced and sent a heartbeat in "
        f"{took[0]:.1f} s, and again in {took[1]:.1f} s; the node grew by {grown / MIB:.1f} MiB, "
        f"{grown / MEMBERS:.0f} bytes each, used {busy * 100:.1f} % of a processor, and worked for "
        f"{bystander.most_work_s:.1f} s before it answered another client"
    )
    assert grown < BYTES_EACH_MAX * MEMBERS
    assert bystander.most_work_s < WORK_MAX_S
    assert running.terminate().exit_code == 0
