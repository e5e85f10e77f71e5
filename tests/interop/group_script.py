"""Random requests of one member for some groups: mostly right, and often nearly right.

No group has two members at a time, so that no request has to wait for another one. An id that a
server gave to a member is written as ``#0``, ``#1``, … in the order in which they came up.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tests.support.raw_client import RawClient

from kvorum.groups.records import decode_record
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_groups import DeleteGroupsRequest
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.list_groups import ListGroupsRequest
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import ZERO_UUID

TOPICS: Final = ("one", "two")
GROUPS: Final = ("g-0", "g-1", "g-2", "grp-é", "")
SESSION_MS: Final = 300_000
PATIENCE_MS: Final = 600_000
CUT_OFF: Final = b"\0\0\0\1"
SUBSCRIPTION: Final = b"\0\0\0\0\0\x01\0\x03one\xff\xff\xff\xff"
"""The consumer protocol's subscription to the topic ``one``."""
FIRST_WITH_INSTANCE: Final = {"join": 5, "sync": 3, "heartbeat": 3, "commit": 7}
FIRST_JOIN_WITH_REASON: Final = 8
FIRST_SYNC_WITH_PROTOCOL: Final = 5
FIRST_LEAVE_WITH_MEMBERS: Final = 3
FIRST_COMMIT_WITHOUT_RETENTION: Final = 5
FIRST_COMMIT_WITH_EPOCH: Final = 6
FIRST_WITH_TOPIC_IDS: Final = 10
FIRST_FETCH_WITH_ALL: Final = 2
FIRST_FETCH_WITH_STABLE: Final = 7
FIRST_FETCH_WITH_GROUPS: Final = 8
FIRST_FIND_WITH_KEYS: Final = 4
LAST_JOIN: Final = 9


class Step(NamedTuple):
    """A request in a version; topic ids are filled in for the server, names are in `topics`."""

    request: Message
    version: int
    group: str = ""


@dataclass
class Member:
    """The state of a group's only member, as the script knows it."""

    member_id: str = ""
    instance: str | None = None
    generation: int = -1
    protocol_type: str = "consumer"


@dataclass
class Script:
    """Makes up requests; `saw` tells it of their answers."""

    random: Random
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    forced: list[Step] = field(default_factory=list[Step])

    def steps(self, count: int) -> Iterator[Step]:
        makers = (
            (self.join, 16),
            (self.sync, 16),
            (self.heartbeat, 10),
            (self.leave, 5),
            (self.commit, 25),
            (self.fetch, 15),
            (self.delete_offsets, 4),
            (self.delete_groups, 3),
            (self.describe, 8),
            (self.list_groups, 4),
            (self.find, 2),
        )
        for _ in range(count):
            if self.forced:
                yield self.forced.pop(0)
                continue
            (maker,) = self.random.choices([one for one, _ in makers], [one for _, one in makers])
            yield maker()

    def saw(self, step: Step, answer: Any) -> None:
        """Learn what became of a join or a leave."""
        if not isinstance(step.request, JoinGroupRequest):
            return
        request = step.request
        if answer.error_code == ErrorCode.NONE:
            self.members[step.group] = Member(
                answer.member_id,
                request.group_instance_id,
                answer.generation_id,
                request.protocol_type,
            )
        elif answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            # A member that is expected holds up the others: it comes, or goes, at once.
            request.member_id = answer.member_id
            again = Step(request, step.version, step.group)
            gone = self._leaving(step.group, answer.member_id, None)
            self.forced.append(again if self.random.random() < 0.9 else gone)

    def _group(self) -> str:
        return self.random.choice((*GROUPS, *GROUPS[:3], *GROUPS[:3]))

    def join(self) -> Step:
        random, group = self.random, self._group()
        known = self.members.get(group)
        version = random.randint(0, LAST_JOIN)
        kind = random.random()
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=PATIENCE_MS,
            protocol_type=random.choice(("consumer", "consumer", "consumer", "connect", "")),
            protocols=self._protocols(),
        )
        if version == 0:
            request.rebalance_timeout_ms = -1
        if version >= FIRST_JOIN_WITH_REASON and random.random() < 0.3:
            request.reason = "why not"
        step = Step(request, version, group)
        if kind < 0.1:
            request.session_timeout_ms = random.choice((0, 5_999, 1_800_001))
        elif kind < 0.2:
            request.member_id = "nobody"
        elif known is not None and kind < 0.75:
            return self._joining_again(step, request, known)
        else:
            return self._joining(step, request, known)
        return step

    def _joining_again(self, step: Step, request: JoinGroupRequest, known: Member) -> Step:
        """Have the member join again, by its id or only as the instance that it is."""
        if self.random.random() < 0.8:
            request.protocol_type = known.protocol_type
        version = step.version
        if known.instance is not None and self.random.random() < 0.5:
            version = max(version, FIRST_WITH_INSTANCE["join"])
            request.protocol_type = known.protocol_type
        else:
            request.member_id = known.member_id
        if version >= FIRST_WITH_INSTANCE["join"]:
            request.group_instance_id = known.instance
        return Step(request, version, step.group)

    def _joining(self, step: Step, request: JoinGroupRequest, known: Member | None) -> Step:
        """Have a new member join, after the one that is there has left."""
        if step.version >= FIRST_WITH_INSTANCE["join"] and self.random.random() < 0.4:
            request.group_instance_id = self.random.choice(("inst-1", "inst-2"))
        if known is None:
            return step
        del self.members[step.group]
        self.forced.append(step)
        return self._leaving(step.group, known.member_id, None)

    def _protocols(self) -> list[JoinGroupRequestProtocol]:
        random = self.random
        if random.random() < 0.05:
            return []
        names = random.sample(("range", "sticky", "roundrobin"), random.choice((1, 1, 2, 3)))
        metadata = random.choice((SUBSCRIPTION, SUBSCRIPTION, SUBSCRIPTION, b"", CUT_OFF))
        return [JoinGroupRequestProtocol(name, metadata) for name in names]

    def _who(self, group: str) -> Member:
        """Return the member, one nearly like it, or none."""
        random = self.random
        known = self.members.get(group)
        if known is None or random.random() < 0.05:
            return Member(random.choice(("", "nobody")), None, random.choice((-1, 0, 1)))
        generation = known.generation
        if random.random() < 0.1:
            generation += random.choice((-1, 1))
        instance = known.instance
        if random.random() < 0.05:
            instance = random.choice((None, "inst-1", "inst-9"))
        return Member(known.member_id, instance, generation, known.protocol_type)

    def sync(self) -> Step:
        random, group = self.random, self._group()
        who, version = self._who(group), random.randint(0, 5)
        request = SyncGroupRequest(group, who.generation, who.member_id)
        if version >= FIRST_WITH_INSTANCE["sync"]:
            request.group_instance_id = who.instance
        if version >= FIRST_SYNC_WITH_PROTOCOL:
            request.protocol_type = random.choice((who.protocol_type,) * 9 + (None, "other"))
            request.protocol_name = random.choice(("range", "sticky", "roundrobin", None))
        wishes = ((who.member_id, b"assigned"), ("nobody", b"x"), (who.member_id, b""))
        count = random.choice((0, 1, 1, 1, 2, 3))
        request.assignments = [SyncGroupRequestAssignment(*wish) for wish in wishes[:count]]
        return Step(request, version, group)

    def heartbeat(self) -> Step:
        random, group = self.random, self._group()
        who, version = self._who(group), random.randint(0, 4)
        request = HeartbeatRequest(group, who.generation, who.member_id)
        if version >= FIRST_WITH_INSTANCE["heartbeat"]:
            request.group_instance_id = who.instance
        return Step(request, version, group)

    def leave(self) -> Step:
        random, group = self.random, self._group()
        who = self._who(group)
        known = self.members.get(group)
        by_instance = random.random() < 0.3 and who.instance is not None
        member_id = "" if by_instance else who.member_id
        step = self._leaving(group, member_id, who.instance if by_instance else None)
        if known is not None and member_id == known.member_id:
            self.members.pop(group)
        if random.random() < 0.2 and step.version >= FIRST_LEAVE_WITH_MEMBERS:
            assert isinstance(step.request, LeaveGroupRequest)
            strangers = [LeaveGroupRequest.MemberIdentity("nobody", "inst-7")]
            step.request.members = [*strangers, *step.request.members]
        return step

    def _leaving(self, group: str, member_id: str, instance: str | None) -> Step:
        version = self.random.randint(0, 5)
        if instance is not None:
            version = max(version, FIRST_LEAVE_WITH_MEMBERS)
        if version < FIRST_LEAVE_WITH_MEMBERS:
            return Step(LeaveGroupRequest(group, member_id), version, group)
        members = [LeaveGroupRequest.MemberIdentity(member_id, instance)]
        return Step(LeaveGroupRequest(group, members=members), version, group)

    def commit(self) -> Step:
        random, group = self.random, self._group()
        who, version = self._who(group), random.randint(2, 10)
        request = OffsetCommitRequest(group, who.generation, who.member_id)
        if random.random() < 0.1:
            request.generation_id_or_member_epoch = -1
            request.member_id = ""
        elif version >= FIRST_WITH_INSTANCE["commit"]:
            request.group_instance_id = who.instance
        if version < FIRST_COMMIT_WITHOUT_RETENTION:
            request.retention_time_ms = random.choice((-1, -1, 3_600_000))
        count = random.choice((0, 1, 1, 1, 2, 3))
        request.topics = [
            OffsetCommitRequestTopic(
                random.choice((*TOPICS, *TOPICS, "absent")),
                ZERO_UUID,
                [self._offset(version) for _ in range(random.choice((0, 1, 1, 2)))],
            )
            for _ in range(count)
        ]
        return Step(request, version, group)

    def _offset(self, version: int) -> OffsetCommitRequestPartition:
        random = self.random
        return OffsetCommitRequestPartition(
            random.choice((0, 0, 1, 2, 9)),
            random.choice((-5, 0, 7, 1 << 40)),
            random.choice((-1, 0, 3)) if version >= FIRST_COMMIT_WITH_EPOCH else -1,
            random.choice((None, "", "note", "é" * 4096, "x" * 4097, "\U0001f600" * 2049)),
        )

    def fetch(self) -> Step:
        random = self.random
        version = random.randint(1, 10)
        request = OffsetFetchRequest()
        if version >= FIRST_FETCH_WITH_STABLE:
            request.require_stable = random.random() < 0.5
        names = [random.choice((*TOPICS, "absent")) for _ in range(random.choice((0, 1, 2)))]
        indexes: list[int] = random.sample([0, 1, 2, 9], random.choice((0, 1, 2, 4)))
        asks_for_all = random.random() < 0.3 and version >= FIRST_FETCH_WITH_ALL
        if version < FIRST_FETCH_WITH_GROUPS:
            request.group_id = self._group()
            topics = [OffsetFetchRequestTopic(name, indexes) for name in names]
            request.topics = None if asks_for_all else topics
            return Step(request, version)
        for _ in range(random.choice((0, 1, 1, 2))):
            asked = [OffsetFetchRequestTopics(name, ZERO_UUID, indexes) for name in names]
            group = OffsetFetchRequestGroup(self._group(), topics=None if asks_for_all else asked)
            request.groups = [*request.groups, group]
        return Step(request, version)

    def delete_offsets(self) -> Step:
        random = self.random
        names = random.sample((*TOPICS, "absent"), random.choice((0, 1, 1, 2)))
        partitions = [OffsetDeleteRequestPartition(one) for one in random.sample((0, 1, 9), 2)]
        topics = [OffsetDeleteRequestTopic(name, partitions) for name in names]
        return Step(OffsetDeleteRequest(self._group(), topics), 0)

    def delete_groups(self) -> Step:
        names = [self._group() for _ in range(self.random.choice((0, 1, 1, 2)))]
        return Step(DeleteGroupsRequest(names), self.random.randint(0, 2))

    def describe(self) -> Step:
        names = [self._group() for _ in range(self.random.choice((1, 1, 2)))]
        version = self.random.randint(0, 6)
        includes = version >= 3 and self.random.random() < 0.5
        return Step(DescribeGroupsRequest([*names, "never"], includes), version)

    def list_groups(self) -> Step:
        random, request = self.random, ListGroupsRequest()
        version = random.randint(0, 5)
        if version >= 4:
            states = ("Stable", " empty", "DEAD", "PreparingRebalance", "x")
            request.states_filter = random.sample(states, random.choice((0, 0, 1, 2)))
        if version >= 5:
            request.types_filter = random.sample(
                ("classic", "Consumer", "x"), random.choice((0, 1))
            )
        return Step(request, version)

    def find(self) -> Step:
        random = self.random
        version, kind = random.randint(0, 6), random.choice((0, 0, 0, 7))
        if version >= FIRST_FIND_WITH_KEYS:
            keys = [self._group() for _ in range(random.choice((0, 1, 2)))]
            return Step(FindCoordinatorRequest("", kind, keys), version)
        return Step(FindCoordinatorRequest(self._group(), kind if version else 0), version)


PARTITIONS: Final = 3
SETTINGS: Final = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
}
MEMBER_ID: Final = re.compile(r"(?:raw|inst-\d)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
A_TIME: Final = 1_000_000_000_000


UNKNOWN_TOPIC_ID: Final = b"\7" * 16


@dataclass
class Server:
    """A connection to a broker, and the ids by which it knows members and topics."""

    client: RawClient
    topic_ids: dict[str, bytes] = field(default_factory=dict[str, bytes])
    member_ids: list[str] = field(default_factory=list[str])

    def ask(self, step: Step) -> Any:
        kind = type(step.request)
        assert kind.API_KEY is not None
        request = self._own(kind.decode(step.request.encode(step.version), step.version))
        if step.version >= FIRST_WITH_TOPIC_IDS:
            self._give_topic_ids(step.request, request)
        return self.client.ask(request, response_class(kind.API_KEY), step.version)

    def common(self, text: str) -> str:
        """Return a text with the common names of members and topics."""
        for found in MEMBER_ID.findall(text):
            if found not in self.member_ids:
                self.member_ids.append(found)
        for number, member_id in enumerate(self.member_ids):
            text = text.replace(member_id, f"#{number}")
        for name, topic_id in self.topic_ids.items():
            text = text.replace(repr(topic_id), name)
        return text

    def _own(self, request: Any) -> Message:
        for one in (
            request,
            *getattr(request, "members", ()),
            *getattr(request, "assignments", ()),
        ):
            member_id = getattr(one, "member_id", None)
            if isinstance(member_id, str) and member_id.startswith("#"):
                one.member_id = self.member_ids[int(member_id[1:])]
        assert isinstance(request, Message)
        return request

    def _give_topic_ids(self, named: Message, request: Message) -> None:
        if isinstance(named, OffsetCommitRequest) and isinstance(request, OffsetCommitRequest):
            for theirs, own in zip(named.topics, request.topics, strict=True):
                own.topic_id = self.topic_ids.get(theirs.name, UNKNOWN_TOPIC_ID)
        if isinstance(named, OffsetFetchRequest) and isinstance(request, OffsetFetchRequest):
            for their_group, group in zip(named.groups, request.groups, strict=True):
                for wish, own_wish in zip(
                    their_group.topics or (), group.topics or (), strict=True
                ):
                    own_wish.topic_id = self.topic_ids.get(wish.name, UNKNOWN_TOPIC_ID)


def coordinates(client: RawClient) -> bool:
    names = [f"group-{number}" for number in range(40)]
    found = client.ask(FindCoordinatorRequest("", 0, names), FindCoordinatorResponse, 4)
    described = client.ask(DescribeGroupsRequest(names), DescribeGroupsResponse, 5)
    codes = {one.error_code for one in found.coordinators}
    codes |= {one.error_code for one in described.groups}
    return codes == {ErrorCode.NONE}


def topic_ids(client: RawClient) -> dict[str, bytes]:
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in TOPICS])
    answer = client.ask(request, MetadataResponse, 12)
    return {
        str(topic.name): topic.topic_id for topic in answer.topics if topic.topic_id != ZERO_UUID
    }


def batches(directory: Path, server: Server) -> list[object]:
    """Return the batches of a partition, with times left out, and the ids that all servers use."""
    (file,) = sorted(directory.glob("*.log"))
    found: list[object] = []
    for batch in read_batches(file.read_bytes()):
        header = batch._replace(
            length=0, crc=0, base_timestamp=0, max_timestamp=0, data=memoryview(b"")
        )
        assert batch.base_timestamp > A_TIME
        read = list(batch.records())
        records = [server.common(_record(one.key, one.value, server)) for one in read]
        if all(one.value is None for one in read):
            # A group's offsets end in the order of Java's hashes.
            records.sort()
        found.append((header._replace(position=0), records))
    return found


def _record(key: bytes | None, value: bytes | None, server: Server) -> str:
    assert key is not None
    record = decode_record(key, value)
    assert record is not None
    content = record.value
    if isinstance(content, GroupMetadataValue):
        content.members.sort(key=lambda one: server.common(one.member_id))
        content.current_state_timestamp = min(content.current_state_timestamp, A_TIME)
    if isinstance(content, OffsetCommitValue):
        content.commit_timestamp = min(content.commit_timestamp, A_TIME)
        content.expire_timestamp = min(content.expire_timestamp, A_TIME)
    return repr(record)
