"""Every field of a group's requests at its limits where the group has a member, beside Kafka.

Each request goes to a group of its own, which both brokers bring into the same state before and
describe afterwards. The newest version of each request; all versions with KVORUM_BAD_INPUT=all.
"""

import base64
import os
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, cast

import pytest
from tests.interop.asked_broker import INTERNAL_TOPICS, SILENCE_S, AskedBroker
from tests.interop.differential.comparing import is_met_otherwise
from tests.interop.differential.limits import LONGEST_STRING, changed_bodies, description
from tests.interop.differential.script import message_of
from tests.interop.differential.sides import NO_ANSWER
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

TOPIC: Final = "limits"
MEMBER: Final = "$member"
"""A placeholder for the id of the member that the group has."""
GROUP: Final = "$group"
TOPIC_ID: Final = "$topic"
INSTANCE: Final = "inst"
UUID_CHARACTERS: Final = 36
LONGEST_PREFIX: Final = LONGEST_STRING - UUID_CHARACTERS - 1
"""The most characters of a client's or an instance's id that a member's id has room for."""
LARGE: Final = base64.b64encode(bytes(1_500_000)).decode()
"""More bytes than a record of ``__consumer_offsets`` may have."""

MANY_OFFSETS: Final = 20_000
"""More offsets than a batch of ``__consumer_offsets`` has room for."""


class Begin(Enum):
    """The state of the group before the request."""

    NOBODY = 0
    JOINED = 1
    """A leader that has to say yet who gets what."""
    STABLE = 2
    STATIC = 3
    """As `STABLE`, with a member that is an instance."""
    EMPTY = 4
    """A committed offset, and no member."""


class Story(NamedTuple):
    """An API's good request in a state of the group."""

    api: str
    begin: Begin
    body: Mapping[str, Any]
    versions: range

    @property
    def name(self) -> str:
        """The name of the story."""
        return f"{self.api} {self.begin.name.lower()}"


class Case(NamedTuple):
    """A request that differs from a good one, in a group of its own."""

    what: str
    body: Mapping[str, Any]
    client_id: str | None = "raw"


_PROTOCOL: Final = {"name": "range", "metadata": base64.b64encode(SUBSCRIPTION).decode()}
_ASSIGNMENT: Final = base64.b64encode(b"\0\0").decode()
_JOIN: Final = {
    "groupId": GROUP,
    "sessionTimeoutMs": 60_000,
    "rebalanceTimeoutMs": 60_000,
    "memberId": "",
    "groupInstanceId": None,
    "protocolType": "consumer",
    "protocols": [_PROTOCOL],
    "reason": None,
}
_SYNC: Final = {
    "groupId": GROUP,
    "generationId": 1,
    "memberId": MEMBER,
    "groupInstanceId": None,
    "protocolType": "consumer",
    "protocolName": "range",
    "assignments": [{"memberId": MEMBER, "assignment": _ASSIGNMENT}],
}
_HEARTBEAT: Final = {
    "groupId": GROUP,
    "generationId": 1,
    "memberId": MEMBER,
    "groupInstanceId": None,
}
_LEAVE: Final = {
    "groupId": GROUP,
    "memberId": MEMBER,
    "members": [{"memberId": MEMBER, "groupInstanceId": None, "reason": None}],
}
_OFFSET: Final = {
    "partitionIndex": 0,
    "committedOffset": 3,
    "committedLeaderEpoch": -1,
    "committedMetadata": "",
}
_COMMIT: Final = {
    "groupId": GROUP,
    "generationIdOrMemberEpoch": 1,
    "memberId": MEMBER,
    "groupInstanceId": None,
    "topics": [{"name": TOPIC, "topicId": TOPIC_ID, "partitions": [_OFFSET]}],
}
_TRANSACTIONAL: Final = {
    "transactionalId": "limits",
    "groupId": GROUP,
    "producerId": 5,
    "producerEpoch": 0,
    "generationIdOrMemberEpoch": 1,
    "memberId": MEMBER,
    "groupInstanceId": None,
    "topics": [{"name": TOPIC, "partitions": [_OFFSET]}],
}
_OF_NOBODY: Final = {"generationIdOrMemberEpoch": -1, "memberId": ""}
_WISH: Final = [{"name": TOPIC, "topicId": TOPIC_ID, "partitionIndexes": [0]}]
_FETCH: Final = {
    "groupId": GROUP,
    "topics": [{"name": TOPIC, "partitionIndexes": [0]}],
    "groups": [{"groupId": GROUP, "memberId": None, "memberEpoch": -1, "topics": _WISH}],
    "requireStable": False,
}
_DELETE: Final = {
    "groupId": GROUP,
    "topics": [{"name": TOPIC, "partitions": [{"partitionIndex": 0}]}],
}
_AS_INSTANCE: Final = {"groupInstanceId": INSTANCE}
_AS_MEMBER: Final = {"memberId": MEMBER, **_AS_INSTANCE}
_GONE: Final = {"memberId": "", "groupInstanceId": INSTANCE, "reason": None}

STORIES: Final = (
    Story("JoinGroup", Begin.NOBODY, _JOIN, range(10)),
    Story("JoinGroup", Begin.STABLE, {**_JOIN, "memberId": MEMBER}, range(10)),
    Story("JoinGroup", Begin.STATIC, {**_JOIN, **_AS_MEMBER}, range(5, 10)),
    Story("SyncGroup", Begin.JOINED, _SYNC, range(6)),
    Story("SyncGroup", Begin.STABLE, _SYNC, range(6)),
    Story("Heartbeat", Begin.STABLE, _HEARTBEAT, range(5)),
    Story("Heartbeat", Begin.STATIC, {**_HEARTBEAT, **_AS_INSTANCE}, range(3, 5)),
    Story("LeaveGroup", Begin.STABLE, _LEAVE, range(6)),
    Story("LeaveGroup", Begin.STATIC, {**_LEAVE, "members": [_GONE]}, range(3, 6)),
    Story("OffsetCommit", Begin.STABLE, _COMMIT, range(2, 11)),
    Story("OffsetCommit", Begin.EMPTY, {**_COMMIT, **_OF_NOBODY}, range(2, 11)),
    Story("OffsetCommit", Begin.STATIC, {**_COMMIT, **_AS_INSTANCE}, range(7, 11)),
    # From version 5 on the coordinator of the transaction is asked (test_transaction_coordinator).
    Story("TxnOffsetCommit", Begin.STABLE, _TRANSACTIONAL, range(5)),
    Story("TxnOffsetCommit", Begin.EMPTY, {**_TRANSACTIONAL, **_OF_NOBODY}, range(5)),
    Story("OffsetFetch", Begin.EMPTY, _FETCH, range(1, 11)),
    Story("OffsetDelete", Begin.EMPTY, _DELETE, range(1)),
    Story("OffsetDelete", Begin.STABLE, _DELETE, range(1)),
    Story("DescribeGroups", Begin.STABLE, {"groups": [GROUP]}, range(7)),
    Story("DeleteGroups", Begin.EMPTY, {"groupsNames": [GROUP]}, range(4)),
    Story("DeleteGroups", Begin.STABLE, {"groupsNames": [GROUP]}, range(4)),
)


def cases(story: Story, kind: Any, version: int) -> Iterator[Case]:
    """Yield a story's cases: of each field, then of the ids that a member's id is made of."""
    yield Case("as it is", story.body)
    for path, changed in changed_bodies(kind, story.body, version, has_others=True):
        yield Case(description(path, changed), changed)
    match story.api, story.begin:
        case "JoinGroup", Begin.NOBODY:
            for client_id in (None, "", "é", "x" * LONGEST_PREFIX, "x" * (LONGEST_PREFIX + 1)):
                yield Case(f"client id {client_id and client_id[:9]}", story.body, client_id)
            for length in (LONGEST_PREFIX, LONGEST_PREFIX + 1):
                yield Case(f"instance of {length}", {**story.body, "groupInstanceId": "x" * length})
            protocol = {**_PROTOCOL, "metadata": LARGE}
            yield Case("large metadata", {**story.body, "protocols": [protocol]})
        # Kafka may name an offset twice after this, if there was one (differences.md).
        case (("OffsetCommit" | "TxnOffsetCommit"), Begin.STABLE):
            topic = story.body["topics"][0]
            many = {**topic, "partitions": [_OFFSET] * MANY_OFFSETS}
            yield Case("many offsets", {**story.body, "topics": [many]})
        case "SyncGroup", _:
            large = [{"memberId": MEMBER, "assignment": LARGE}]
            yield Case("large assignment", {**story.body, "assignments": large})
        case _:
            pass


def placed(value: Json, names: Mapping[str, str]) -> Json:
    """Return a body with the names of a broker in place of what stands for them."""
    match value:
        case dict():
            fields = cast("dict[str, Json]", value)
            return {name: placed(each, names) for name, each in fields.items()}
        case list():
            return [placed(each, names) for each in cast("Iterable[Json]", value)]
        case str():
            return names.get(value, value)
        case _:
            return value


IS_WHOLE: Final = os.environ.get("KVORUM_BAD_INPUT") == "all"
KEYS: Final = {spec.name: key for key, spec in API_SPECS.items()}
SESSION_MS: Final = 60_000
JOIN, STATIC_JOIN, SYNC, BEAT, LIST, COMMIT = 3, 5, 3, 3, 4, 8
"""The versions of the requests that bring a group into a state."""
OWN: Final = frozenset({"port", "throttleTimeMs"})
SETTINGS: Final = {
    **INTERNAL_TOPICS,
    "group.initial.rebalance.delay.ms": "0",
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
            told.append(leader.ask(_join_request(group, None, member_id), JoinGroupResponse, JOIN))
            sync.generation_id = 2
            told.append(leader.ask(sync, SyncGroupResponse, SYNC))
            told.append(leader.ask(HeartbeatRequest(group, 2, member_id), HeartbeatResponse, BEAT))
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
        wait_for(lambda: ours.left(group) == real.left(group), "both groups are alike")
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
