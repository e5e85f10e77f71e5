"""Thousands of connections that wait, also as consumers and members: no other client notices."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import create_connection, socket
from typing import Final, TypeVar

import pytest
from tests.process.bystander import WORK_MAX_S, Bystander
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient, sized_frame
from tests.support.record_requests import FETCH_VERSION, batch, fetch_request, produce, values
from tests.support.resources import Memory, wait_until_quiet
from tests.support.topics import create, wait_until_served, wait_until_written
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.messages.fetch import FetchResponse
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

BYTES_EACH_MAX = 8 * 1024
WAIT_MS: Final = 300_000
IDLE_S: Final = 3.0
TOPIC: Final = "quiet"
RECORD: Final = b"the record"
CONSUMER_BYTES_MAX: Final = 20 * 1024
MEMBERS: Final = 5_000
SUBSCRIPTION: Final = b"\0\0\0\0\0\x01\0\x05topic\xff\xff\xff\xff"
ASSIGNMENT: Final = b"\0\0\0\0\0\x01\0\x05topic\0\0\0\x01\0\0\0\0\xff\xff\xff\xff"
JOIN, SYNC, BEAT, LEAVE = 3, 3, 3, 5
"""The versions of the requests. In this one of JoinGroup a member joins with one request."""
TIMEOUT_MS: Final = 600_000
MEMBER_BYTES_MAX: Final = 24 * 1024
MIB: Final = 2**20
Response = TypeVar("Response", bound=Message)


@pytest.fixture
def node(formatted: Node, tmp_path: Path) -> Node:
    """A node that serves thousands at once and stays in its cluster; groups wait for members."""
    return formatted.copy_to(tmp_path / "node", settings={})


def _connected(node: Node) -> socket:
    return create_connection(("127.0.0.1", node.broker_port), timeout=PATIENCE_S)


def _timed_answer(address: str) -> float:
    started = time.monotonic()
    wait_until_served(address)
    return time.monotonic() - started


def test_idle_connections(
    report: Report, node: Node, running: NodeProcess, connection_count: int
) -> None:
    memory = Memory(running.pid)
    slowest = _timed_answer(node.broker)
    before = memory.resident_bytes()
    with ExitStack() as idle, RawClient(node.broker):
        for number in range(connection_count):
            idle.enter_context(
                create_connection(("127.0.0.1", node.broker_port), timeout=PATIENCE_S)
            )
            if number % 1000 == 999:
                slowest = max(slowest, _timed_answer(node.broker))
        assert create(node.broker, "among-the-idle") == [ErrorCode.NONE]
        grown = memory.resident_bytes() - before
    report(
        f"{connection_count} idle connections: the node grew from {before / 2**20:.1f} MiB by "
        f"{grown / 2**20:.1f} MiB, {grown / connection_count:.0f} bytes each; the slowest answer "
        f"to another client took {slowest * 1000:.0f} ms"
    )
    assert grown < BYTES_EACH_MAX * connection_count
    assert create(node.broker, "after") == [ErrorCode.NONE]
    assert running.terminate().exit_code == 0


def test_connections_that_come_and_go(
    node: Node, running: NodeProcess, connection_count: int
) -> None:
    """Nothing of them is kept."""
    memory = Memory(running.pid)
    count = min(connection_count, 2000)
    for _ in range(count):
        _connected(node).close()
    wait_until_served(node.broker)
    before = memory.resident_bytes()
    for _ in range(count):
        _connected(node).close()
    wait_until_served(node.broker)
    assert memory.resident_bytes() - before < 2 * 1024 * 1024


def _answers(consumers: list[socket]) -> Iterator[FetchResponse]:
    """Yield what each is answered; a response is small and comes at once."""
    for consumer in consumers:
        consumer.settimeout(PATIENCE_S)
        _, response = decode_response_frame(
            consumer.recv(4096)[4:], response_class=FetchResponse, version=FETCH_VERSION
        )
        yield response


@pytest.mark.slow
def test_idle_consumers(
    report: Report, node: Node, running: NodeProcess, connection_count: int
) -> None:
    assert create(node.broker, TOPIC) == [ErrorCode.NONE]
    wait_until_written(node.broker, TOPIC, batch(b"first"))
    memory = Memory(running.pid)
    before = memory.resident_bytes()
    frame = sized_frame(fetch_request(TOPIC, 1, min_bytes=1, max_wait_ms=WAIT_MS), FETCH_VERSION)
    with ExitStack() as opened:
        with Bystander(node.broker, running.pid) as while_they_come:
            consumers: list[socket] = []
            for _ in range(connection_count):
                consumer = opened.enter_context(
                    create_connection(("127.0.0.1", node.broker_port), timeout=PATIENCE_S)
                )
                consumer.sendall(frame)
                consumers.append(consumer)
        busy = wait_until_quiet(running.pid, IDLE_S)
        grown = memory.resident_bytes() - before
        started = time.monotonic()
        with (
            Bystander(node.broker, running.pid) as while_they_wake,
            RawClient(node.broker) as producer,
        ):
            assert produce(producer, TOPIC, batch(RECORD)).error_code == ErrorCode.NONE
            for answer in _answers(consumers):
                assert values(answer.responses[0].partitions[0]) == [RECORD]
        awake = time.monotonic() - started
        peak = memory.peak_bytes() - before
    report(
        f"{connection_count} consumers that wait: the node grew by {grown / 2**20:.1f} MiB, "
        f"{grown / connection_count:.0f} bytes each ({peak / connection_count:.0f} while all are "
        f"answered), and used {busy * 100:.1f} % of a processor; a record came to all of them in "
        f"{awake:.1f} s; the slowest answer to another client took "
        f"{while_they_come.slowest_s * 1000:.0f} ms while they came, "
        f"{while_they_wake.slowest_s * 1000:.0f} ms while they were woken"
    )
    assert grown < CONSUMER_BYTES_MAX * connection_count
    assert peak < 2 * CONSUMER_BYTES_MAX * connection_count
    assert max(while_they_come.most_work_s, while_they_wake.most_work_s) < WORK_MAX_S
    assert running.terminate().exit_code == 0


class Member:
    def __init__(self, client: RawClient, group: str) -> None:
        self.client = client
        self.group = group
        self.joined = JoinGroupResponse()

    def join(self) -> None:
        request = JoinGroupRequest(
            self.group,
            TIMEOUT_MS,
            TIMEOUT_MS,
            self.joined.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
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
    assert grown < MEMBER_BYTES_MAX * MEMBERS
    assert bystander.most_work_s < WORK_MAX_S
    assert running.terminate().exit_code == 0
