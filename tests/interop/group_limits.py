"""Requests about a group that has a member, with one field at one of its limits."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, cast

from tests.interop.differential.limits import LONGEST_STRING, changed_bodies, description
from tests.interop.group_script import SUBSCRIPTION

from kvorum.wire.json_form import Json

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
    # From version 5 on the coordinator of the transaction is asked, which ours never is.
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
