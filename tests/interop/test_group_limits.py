"""Every field of a group's requests at its limits where the group has a member, beside Kafka.

Each request goes to a group of its own, which both brokers bring into the same state before and
describe afterwards. The newest version of each request; all versions with KVORUM_BAD_INPUT=all.
"""

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.interop.asked_broker import SILENCE_S, AskedBroker
from tests.interop.differential.failures import is_met_otherwise
from tests.interop.differential.limits import LONGEST_STRING
from tests.interop.differential.messages import message_of
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.group_limits import (
    GROUP,
    INSTANCE,
    MEMBER,
    STORIES,
    TOPIC,
    TOPIC_ID,
    Begin,
    Case,
    Story,
    cases,
    placed,
)
from tests.interop.group_script import SUBSCRIPTION
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, NeverCameAboutError, wait_for

from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError
from kvorum.wire.json_form import Json
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kvorum.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

IS_WHOLE: Final = os.environ.get("KVORUM_BAD_INPUT") == "all"
KEYS: Final = {spec.name: key for key, spec in API_SPECS.items()}
SESSION_MS: Final = 60_000
JOIN, STATIC_JOIN, SYNC, BEAT, LIST, COMMIT = 3, 5, 3, 3, 4, 8
"""The versions of the requests that bring a group into a state."""
OWN: Final = frozenset({"port", "throttleTimeMs"})
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.partition.verification.enable": "false",
}


class GroupBroker(AskedBroker):
    """One of two brokers, and the groups that are made there."""

    def begin(self, begin: Begin, group: str) -> str:
        """Bring a group into a state; return the id of its member, if it has one."""
        if begin is Begin.NOBODY:
            return ""
        with RawClient(self.address) as client:
            if begin is Begin.EMPTY:
                _commit(client, group)
                return ""
            instance = INSTANCE if begin is Begin.STATIC else None
            member_id = _join(client, group, instance)
            if begin is not Begin.JOINED:
                assignment = SyncGroupRequestAssignment(member_id, b"\0\0")
                request = SyncGroupRequest(group, 1, member_id, instance, assignments=[assignment])
                assert client.ask(request, SyncGroupResponse, SYNC).error_code == ErrorCode.NONE
            return member_id

    def is_met(self, story: Story, case: Case, version: int, group: str, patience_s: float) -> Json:
        """Return the answer to a case, of a group that begins as the story says."""
        names = {MEMBER: self.begin(story.begin, group), GROUP: group, TOPIC_ID: self.topic_id}
        body: Any = placed(case.body, names)
        request = message_of(request_class(KEYS[story.api]), body, version)
        request.encode(version)
        return self.said(request, version, patience_s, client_id=case.client_id, own=OWN)

    def with_a_long_id(self, group: str) -> list[Json]:
        """Return the answers to a leader while a member joins with the longest instance id."""
        with RawClient(self.address) as leader, RawClient(self.address) as other:
            member_id = _join(leader, group, None)
            sync = SyncGroupRequest(
                group, 1, member_id, assignments=[SyncGroupRequestAssignment(member_id, b"\0\0")]
            )
            told: list[Json] = [leader.ask(sync, SyncGroupResponse, SYNC)]
            other.send(_join_request(group, "x" * LONGEST_STRING), STATIC_JOIN)
            wait_for(lambda: self._state(group) == "PreparingRebalance", "the other has joined")
            # Its answer names the other, and so cannot be given.
            join = _join_request(group, None, member_id)
            told.append(leader.ask(join, JoinGroupResponse, JOIN))
            sync.generation_id = 2
            told.append(leader.ask(sync, SyncGroupResponse, SYNC))
            beat = HeartbeatRequest(group, 2, member_id)
            told.append(leader.ask(beat, HeartbeatResponse, BEAT))
            return [*told, self._state(group)]

    def _state(self, group: str) -> str | None:
        with RawClient(self.address) as client:
            listed = client.ask(ListGroupsRequest(), ListGroupsResponse, LIST).groups
        return next((one.group_state for one in listed if one.group_id == group), None)

    def left(self, group: str) -> list[Json]:
        """Return what there is of a group now: its members and its offsets."""
        wishes = [OffsetFetchRequestGroup(group, topics=None)]
        return [
            self.said(DescribeGroupsRequest([group]), 6, own=OWN),
            self.said(OffsetFetchRequest(groups=wishes), 8, own=OWN),
        ]


def _join_request(group: str, instance: str | None, member_id: str = "") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    times = (SESSION_MS, SESSION_MS)
    return JoinGroupRequest(group, *times, member_id, instance, "consumer", protocols)


def _join(client: RawClient, group: str, instance: str | None) -> str:
    request = _join_request(group, instance)
    answer = client.ask(request, JoinGroupResponse, JOIN if instance is None else STATIC_JOIN)
    assert answer.error_code == ErrorCode.NONE
    return answer.member_id


def _commit(client: RawClient, group: str) -> None:
    topic = OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 3)])
    (answer,) = client.ask(
        OffsetCommitRequest(group, topics=[topic]), OffsetCommitResponse, COMMIT
    ).topics
    assert answer.partitions[0].error_code == ErrorCode.NONE


@pytest.fixture(scope="module")
def brokers(both_nodes: BothNodes) -> Iterator[tuple[GroupBroker, GroupBroker]]:
    """Ours and a real one, for all requests."""
    with both_nodes(SETTINGS) as (real, ours):
        yield GroupBroker(ours.address, TOPIC), GroupBroker(real.address, TOPIC)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
def test_no_value_of_a_field_does_otherwise_to_a_group_than_on_kafka(
    brokers: tuple[GroupBroker, GroupBroker], story: Story
) -> None:
    kind = request_class(KEYS[story.api])
    differing, compared = list[str](), 0
    for version in story.versions if IS_WHOLE else story.versions[-1:]:
        for number, case in enumerate(cases(story, kind, version)):
            group = f"{story.name}-{version}-{number}"
            try:
                differing += _differences(*brokers, story, case, version, group)
            except EncodeError:
                continue
            compared += 1
    assert not differing, f"{len(differing)} of {compared}\n" + "\n".join(differing[:20])
    assert compared


def _differences(
    ours: GroupBroker, real: GroupBroker, story: Story, case: Case, version: int, group: str
) -> list[str]:
    """Return what differs about a case: its answer, or else what there is afterwards."""
    expected = real.is_met(story, case, version, group, SILENCE_S)
    patience_s = SILENCE_S if expected == NO_ANSWER else PATIENCE_S
    found = ours.is_met(story, case, version, group, patience_s)
    if is_met_otherwise(found, expected):
        return [f"v{version} {case.what}\n  ours {found}\n  real {expected}"]
    if found != expected:
        return []
    try:
        # A timeout of no time at all is over soon, and not at once.
        wait_for(
            lambda: ours.left(group) == real.left(group),
            "both groups are alike",
            patience_s=SILENCE_S,
        )
    except NeverCameAboutError:
        left = f"ours {ours.left(group)}\n  real {real.left(group)}"
        return [f"v{version} {case.what}: afterwards\n  {left}"]
    return []


def test_a_member_whose_id_no_record_can_hold_leaves_the_group_as_on_kafka(
    brokers: tuple[GroupBroker, GroupBroker],
) -> None:
    ours, real = brokers
    told = [broker.with_a_long_id("long") for broker in (ours, real)]
    assert told[0] == told[1]
