"""A story of members that wait for each other, beside a real broker: equal answers and records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from tests.interop.group_script import SUBSCRIPTION
from tests.interop.group_servers import SETTINGS, Server, batches, coordinates
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.groups.coordinator_partition import coordinator_partition
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUP: Final = "waiting"
JOIN, SYNC = 5, 3
"""The versions of the requests, in which members have instance ids."""
SHORT_MS: Final = 400
LONG_MS: Final = 60_000
QUICK: Final = {**SETTINGS, "group.min.session.timeout.ms": "100"}


class Member:
    """A client on a connection of its own."""

    def __init__(self, story: Story, instance: str | None = None) -> None:
        self.client = story.stack.enter_context(RawClient(story.address))
        self.member_id = ""
        self.instance = instance
        self.generation = -1
        self._story = story

    def join(self, *, session_ms: int = LONG_MS, rebalance_ms: int = LONG_MS) -> None:
        """Send a JoinGroup, and wait for nothing."""
        request = JoinGroupRequest(
            GROUP,
            session_ms,
            rebalance_ms,
            self.member_id,
            self.instance,
            "consumer",
            [JoinGroupRequestProtocol("range", SUBSCRIPTION)],
        )
        self.client.send(request, JOIN)

    def joined(self) -> None:
        """Read the answer of a JoinGroup."""
        answer: Any = self._read(JoinGroupResponse, JOIN)
        self.member_id = answer.member_id or self.member_id
        self.generation = answer.generation_id

    def enter(self, *, session_ms: int = LONG_MS, rebalance_ms: int = LONG_MS) -> None:
        """Have a new member get its id, and send its JoinGroup."""
        self.join(session_ms=session_ms, rebalance_ms=rebalance_ms)
        self.joined()
        self.join(session_ms=session_ms, rebalance_ms=rebalance_ms)

    def sync(self, **assignments: Member) -> None:
        """Send a SyncGroup; assignments are given as text and member."""
        request = SyncGroupRequest(
            GROUP,
            self.generation,
            self.member_id,
            self.instance,
            assignments=[
                SyncGroupRequestAssignment(one.member_id, text.encode())
                for text, one in assignments.items()
            ],
        )
        self.client.send(request, SYNC)

    def synced(self) -> None:
        self._read(SyncGroupResponse, SYNC)

    def heartbeat(self) -> int:
        request = HeartbeatRequest(GROUP, self.generation, self.member_id, self.instance)
        return self.client.ask(request, HeartbeatResponse, 3).error_code

    def beat(self) -> None:
        self._story.tell(f"heartbeat {self.heartbeat()}")

    def commit(self) -> None:
        request = OffsetCommitRequest(GROUP, self.generation, self.member_id, self.instance)
        self._story.tell(repr(self.client.ask(request, OffsetCommitResponse, 8)))

    def leave(self) -> None:
        member = LeaveGroupRequest.MemberIdentity(self.member_id, self.instance)
        request = LeaveGroupRequest(GROUP, members=[member])
        self._story.tell(repr(self.client.ask(request, LeaveGroupResponse, 5)))

    def _read(self, kind: Any, version: int) -> Any:
        answer = self.client.response(kind, version)
        self._story.tell_answer(answer)
        return answer


class Story:
    """The events on one broker, with the common names of members."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self.address = address
        self.stack = stack
        self.told: list[str] = []
        self.server = Server(stack.enter_context(RawClient(address)))

    def tell(self, text: str) -> None:
        self.told.append(self.server.common(text))

    def tell_answer(self, answer: Any) -> None:
        # The order of members is that of Java's hashes of ids that are random.
        members: list[Any] = getattr(answer, "members", [])
        self.server.common(getattr(answer, "member_id", ""))
        members.sort(key=lambda one: self.server.common(one.member_id))
        self.tell(repr(answer))

    def until(self, state: str, members: int) -> None:
        """Wait until the group is in a state, and tell of it."""

        def described() -> Any:
            request = DescribeGroupsRequest([GROUP])
            (group,) = self.server.client.ask(request, DescribeGroupsResponse, 5).groups
            is_so = (group.group_state, len(group.members)) == (state, members)
            return group if is_so else None

        self.tell_answer(wait_for(described, f"the group is {state} with {members} members"))

    def tell_all(self) -> None:
        first, second = Member(self), Member(self)
        first.enter()
        first.joined()
        first.sync(all=first)
        first.synced()
        self.until("Stable", 1)
        self._second_comes(first, second)
        self._second_goes(first, second)
        self._a_voter_falls_silent(first)
        self._no_member_joins_in_time(first)
        self._static_members()

    def _second_comes(self, first: Member, second: Member) -> None:
        second.enter()
        self.until("PreparingRebalance", 2)
        first.beat()
        first.commit()
        first.join()
        first.joined()
        second.joined()
        second.sync()
        self.until("CompletingRebalance", 2)
        first.beat()
        first.commit()
        first.sync(a=first, b=second)
        first.synced()
        second.synced()
        self.until("Stable", 2)

    def _second_goes(self, first: Member, second: Member) -> None:
        second.leave()
        first.beat()
        first.join()
        first.joined()
        second.beat()
        first.sync(again=first)
        first.synced()
        first.leave()
        self.until("Empty", 0)

    def _a_voter_falls_silent(self, first: Member) -> None:
        first.member_id = ""
        first.enter()
        first.joined()
        first.sync(all=first)
        first.synced()
        silent = Member(self)
        silent.enter(session_ms=SHORT_MS)
        self.until("PreparingRebalance", 2)
        first.join()
        first.joined()
        silent.joined()
        first.sync(a=first, b=silent)
        first.synced()
        self.until("PreparingRebalance", 1)
        first.join(rebalance_ms=SHORT_MS)
        first.joined()
        first.sync(all=first)
        first.synced()

    def _no_member_joins_in_time(self, first: Member) -> None:
        """A rebalance ends without the member that does not come, then without one's sync."""
        third = Member(self)
        third.enter(rebalance_ms=SHORT_MS)
        third.joined()
        first.beat()
        third.sync(all=third)
        third.synced()
        fourth = Member(self)
        fourth.enter(rebalance_ms=SHORT_MS)
        self.until("PreparingRebalance", 2)
        third.join(rebalance_ms=SHORT_MS)
        third.joined()
        fourth.joined()
        fourth.sync()
        # The leader of the group never says who gets what.
        fourth.synced()
        self.until("PreparingRebalance", 1)
        fourth.join()
        fourth.joined()
        fourth.leave()
        self.until("Empty", 0)

    def _static_members(self) -> None:
        one = Member(self, "inst-1")
        one.join()
        one.joined()
        one.sync(first=one)
        one.synced()
        other = Member(self, "inst-2")
        other.join()
        self.until("PreparingRebalance", 2)
        one.join()
        one.joined()
        other.joined()
        one.sync(a=one, b=other)
        one.synced()
        other.sync()
        other.synced()
        again = Member(self, "inst-2")
        again.join()
        again.joined()
        other.beat()
        again.beat()
        again.sync()
        again.synced()
        self.until("Stable", 2)
        twin = Member(self, "inst-1")
        one.join()
        self.until("PreparingRebalance", 2)
        twin.join()
        one.joined()
        again.join()
        again.joined()
        twin.joined()
        self.until("CompletingRebalance", 2)
        for member in (twin, again):
            member.leave()
        self.until("Empty", 0)


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes(QUICK) as (real, ours):
        for node in (real, ours):
            with RawClient(node.address) as client:
                node.process.wait_until(lambda: coordinates(client), "groups are coordinated")
        yield real, ours


def test_members_wait_for_each_other_as_on_a_real_broker(nodes: tuple[Node, Node]) -> None:
    stories: list[Story] = []
    for node in nodes:
        with ExitStack() as stack:
            story = Story(node.address, stack)
            story.tell_all()
            stories.append(story)
    theirs, ours = stories
    assert ours.told == theirs.told
    real, mine = nodes
    real.stop()
    mine.stop()
    partition = f"__consumer_offsets-{coordinator_partition(GROUP, 3)}"
    expected = batches(real.data / partition, theirs.server)
    assert batches(mine.data / partition, ours.server) == expected
