"""Random requests about groups, beside a real broker: equal answers, and equal records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.group_script import (
    PARTITIONS,
    SETTINGS,
    SUBSCRIPTION,
    TOPICS,
    Script,
    Server,
    batches,
    coordinates,
    topic_ids,
)
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.coordinator.coordinator_partition import coordinator_partition
from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.list_groups import ListGroupsResponse
from kvorum.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchResponse
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

STEPS: Final = int(os.environ.get("KVORUM_GROUP_STEPS", "2500"))
SEED: Final = int(os.environ.get("KVORUM_GROUP_SEED", "1"))


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes(SETTINGS) as (real, ours):
        for node in (real, ours):
            make_topics(node.address, *(TopicWish(name, partitions=PARTITIONS) for name in TOPICS))
            with RawClient(node.address) as client:
                node.process.wait_until(lambda: coordinates(client), "every group is coordinated")
                node.process.wait_until(lambda: knows_topics(client), "the topics are known")
        yield real, ours


def knows_topics(client: RawClient) -> bool:
    return len(topic_ids(client)) == len(TOPICS)


def _sort_topics(topics: list[Any], server: Server) -> None:
    for topic in topics:
        partitions: list[Any] = topic.partitions
        partitions.sort(key=_partition_index)
    topics.sort(key=lambda one: server.common(repr(one)))


def _partition_index(partition: Any) -> int:
    return int(partition.partition_index)


def in_order(response: Any, server: Server) -> Any:
    """Sort what comes in no order, and leave out the port."""
    match response:
        case ListGroupsResponse():
            response.groups.sort(key=lambda one: one.group_id)
        case DeleteGroupsResponse():
            response.results.sort(key=lambda one: one.group_id)
        case DescribeGroupsResponse():
            response.groups.sort(key=lambda one: one.group_id)
        case FindCoordinatorResponse():
            placed: list[Any] = [response, *response.coordinators]
            for one in placed:
                one.port = min(one.port, 1)
        case OffsetFetchResponse():
            _sort_topics(response.topics, server)
            for group in response.groups:
                _sort_topics(group.topics, server)
        case _:
            pass
    return response


@pytest.mark.slow
def test_answers_and_records_are_those_of_kafka(nodes: tuple[Node, Node]) -> None:
    real, ours = nodes
    script = Script(Random(SEED))
    with RawClient(real.address) as one, RawClient(ours.address) as other:
        theirs, mine = (Server(client, topic_ids(client)) for client in (one, other))
        for number, step in enumerate(script.steps(STEPS)):
            answers = [in_order(server.ask(step), server) for server in (theirs, mine)]
            expected, got = (
                server.common(repr(answer))
                for server, answer in zip((theirs, mine), answers, strict=True)
            )
            assert got == expected, f"step {number}: {step}\n  expected {expected}\n  got {got}"
            if hasattr(answers[0], "member_id"):
                answers[0].member_id = theirs.common(answers[0].member_id)
            script.saw(step, answers[0])
    real.stop()
    ours.stop()
    for partition in range(PARTITIONS):
        expected_log = batches(real.data / f"__consumer_offsets-{partition}", theirs)
        assert batches(ours.data / f"__consumer_offsets-{partition}", mine) == expected_log
        assert expected_log


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
        who, times = (self.member_id, self.instance), (session_ms, rebalance_ms)
        protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
        self.client.send(JoinGroupRequest(GROUP, *times, *who, "consumer", protocols), JOIN)

    def joined(self) -> None:
        """Read the answer of a JoinGroup."""
        answer: Any = self._read(JoinGroupResponse, JOIN)
        self.member_id = answer.member_id or self.member_id
        self.generation = answer.generation_id

    def take_part(self, *, session_ms: int = LONG_MS, rebalance_ms: int = LONG_MS) -> None:
        """Join a rebalance that waits for no other member."""
        self.join(session_ms=session_ms, rebalance_ms=rebalance_ms)
        self.joined()

    def enter(self, *, session_ms: int = LONG_MS, rebalance_ms: int = LONG_MS) -> None:
        """Have a new member get its id, and send its JoinGroup."""
        self.take_part(session_ms=session_ms, rebalance_ms=rebalance_ms)
        self.join(session_ms=session_ms, rebalance_ms=rebalance_ms)

    def enter_alone(self, *, rebalance_ms: int = LONG_MS) -> None:
        """Have a new member be all that the group waits for."""
        self.enter(rebalance_ms=rebalance_ms)
        self.joined()

    def sync(self, **assignments: Member) -> None:
        """Send a SyncGroup; assignments are given as text and member."""
        given = [
            SyncGroupRequestAssignment(one.member_id, text.encode())
            for text, one in assignments.items()
        ]
        who = (self.generation, self.member_id, self.instance)
        self.client.send(SyncGroupRequest(GROUP, *who, assignments=given), SYNC)

    def synced(self) -> None:
        self._read(SyncGroupResponse, SYNC)

    def get_share(self, **assignments: Member) -> None:
        """Send a SyncGroup that is answered at once."""
        self.sync(**assignments)
        self.synced()

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
            return group if (group.group_state, len(group.members)) == (state, members) else None

        self.tell_answer(wait_for(described, f"the group is {state} with {members} members"))

    def tell_all(self) -> None:
        first, second = Member(self), Member(self)
        first.enter_alone()
        first.get_share(all=first)
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
        first.take_part()
        second.joined()
        second.sync()
        self.until("CompletingRebalance", 2)
        first.beat()
        first.commit()
        first.get_share(a=first, b=second)
        second.synced()
        self.until("Stable", 2)

    def _second_goes(self, first: Member, second: Member) -> None:
        second.leave()
        first.beat()
        first.take_part()
        second.beat()
        first.get_share(again=first)
        first.leave()
        self.until("Empty", 0)

    def _a_voter_falls_silent(self, first: Member) -> None:
        first.member_id = ""
        first.enter_alone()
        first.get_share(all=first)
        silent = Member(self)
        silent.enter(session_ms=SHORT_MS)
        self.until("PreparingRebalance", 2)
        first.take_part()
        silent.joined()
        first.get_share(a=first, b=silent)
        self.until("PreparingRebalance", 1)
        first.take_part(rebalance_ms=SHORT_MS)
        first.get_share(all=first)

    def _no_member_joins_in_time(self, first: Member) -> None:
        """A rebalance ends without the member that does not come, then without one's sync."""
        third = Member(self)
        third.enter_alone(rebalance_ms=SHORT_MS)
        first.beat()
        third.get_share(all=third)
        fourth = Member(self)
        fourth.enter(rebalance_ms=SHORT_MS)
        self.until("PreparingRebalance", 2)
        third.take_part(rebalance_ms=SHORT_MS)
        fourth.joined()
        fourth.sync()
        # The leader of the group never says who gets what.
        fourth.synced()
        self.until("PreparingRebalance", 1)
        fourth.take_part()
        fourth.leave()
        self.until("Empty", 0)

    def _static_members(self) -> None:
        one = Member(self, "inst-1")
        one.take_part()
        one.get_share(first=one)
        other = Member(self, "inst-2")
        other.join()
        self.until("PreparingRebalance", 2)
        one.take_part()
        other.joined()
        one.get_share(a=one, b=other)
        other.get_share()
        again = Member(self, "inst-2")
        again.take_part()
        other.beat()
        again.beat()
        again.get_share()
        self.until("Stable", 2)
        twin = Member(self, "inst-1")
        one.join()
        self.until("PreparingRebalance", 2)
        twin.join()
        one.joined()
        again.take_part()
        twin.joined()
        self.until("CompletingRebalance", 2)
        for member in (twin, again):
            member.leave()
        self.until("Empty", 0)


@pytest.fixture(scope="module")
def quick_nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes(QUICK) as (real, ours):
        for node in (real, ours):
            with RawClient(node.address) as client:
                node.process.wait_until(lambda: coordinates(client), "groups are coordinated")
        yield real, ours


def test_members_wait_for_each_other_as_on_a_real_broker(quick_nodes: tuple[Node, Node]) -> None:
    stories: list[Story] = []
    for node in quick_nodes:
        with ExitStack() as stack:
            story = Story(node.address, stack)
            story.tell_all()
            stories.append(story)
    theirs, ours = stories
    assert ours.told == theirs.told
    real, mine = quick_nodes
    real.stop()
    mine.stop()
    partition = f"__consumer_offsets-{coordinator_partition(GROUP, 3)}"
    expected = batches(real.data / partition, theirs.server)
    assert batches(mine.data / partition, ours.server) == expected
