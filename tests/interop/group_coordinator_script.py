"""Steps for a group coordinator, made up by what is likely to matter next."""

import struct
from random import Random
from typing import Final

from tests.interop.coordinator_steps import GROUPS, INSTANCES, CoordinatorSteps
from tests.interop.group_coordinator_driver import Driver

from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupState
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.group_metadata_key import GroupMetadataKey
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

TOPICS: Final = ("one", "two", "three")
PROTOCOLS: Final = ("range", "sticky", "roundrobin", "cooperative-sticky")
FAILING_SCRIPTS: Final = 0.5
FAILING_APPENDS: Final = 0.08
TOPIC_IDS: Final = (bytes(16), b"\x01" * 16, b"\x02" * 16)


class Script(CoordinatorSteps):
    """Makes steps from the state of the driver's shard; mostly right, and often nearly right."""

    def __init__(self, random: Random, driver: Driver) -> None:
        super().__init__(random, failing_scripts=FAILING_SCRIPTS, failing_appends=FAILING_APPENDS)
        self._driver = driver
        self._kinds = {
            self._join: 30,
            self._sync: 22,
            self._heartbeat: 8,
            self._leave: 5,
            self._offset_commit: 12,
            self._transactional_commit: 5,
            self._marker: 3,
            self._fetch: 4,
            self._delete_offsets: 3,
            self._delete_groups: 1,
            self._describe: 3,
            self._list: 2,
            self._topic_deletion: 1,
            self._late: 1,
            self._load: 1,
        }

    def step(self) -> str:
        random = self._random
        driver = self._driver
        chance = random.random()
        if chance < 0.25:
            return "commit"
        due = [key for key, timer in driver.timers.items() if timer.deadline_ms <= driver.now]
        if due and chance < 0.6:
            return f"fire {random.choice(sorted(due))} {self._failure()}"
        if chance < 0.38:
            return f"time {driver.now + self._elapsed()}"
        kinds = list(self._kinds)
        kind = random.choices(kinds, [self._kinds[kind] for kind in kinds])[0]
        is_read = kind in (self._fetch, self._describe, self._list)
        # Kafka does not show committed offsets rightly after a failed append.
        return "commit" if is_read and driver.has_reverted else kind()

    def _elapsed(self) -> int:
        driver = self._driver
        future = [timer.deadline_ms for timer in driver.timers.values()]
        if self._random.random() < 0.8 and future:
            return max(0, min(future) - driver.now + self._random.choice((-1, 0, 0, 1)))
        return self._random.choice((1, 100, 3000, 60_000, 700_000))

    def _group(self) -> tuple[str, ClassicGroup | None]:
        group_id = self._random.choice(GROUPS)
        return group_id, self._driver.shard.state.find_classic_group(group_id)

    def _member(self, group: ClassicGroup | None) -> tuple[str, str | None, int]:
        """Return member id, instance id and generation of a member, or nearly so."""
        random = self._random
        if group is None or not len(group.members) or random.random() < 0.05:
            return random.choice(("", "nobody")), None, random.choice((-1, 0, 1))
        member = random.choice(group.members.values())
        instance = member.group_instance_id
        if random.random() < 0.05:
            instance = random.choice((None, *INSTANCES))
        return member.member_id, instance, group.generation_id - (random.random() < 0.06)

    def _join(self) -> str:
        random = self._random
        group_id, group = self._group()
        version = random.choice((0, 1, 3, 4, 5, 7, 8, 9, 9))
        member_id, instance = "", None
        if version >= 5 and random.random() < 0.35:
            instance = random.choice(INSTANCES)
        chance = random.random()
        if group is not None and chance < 0.25 and group.pending_join_members:
            member_id = random.choice(sorted(group.pending_join_members))
            instance = None if random.random() < 0.95 else instance
        elif group is not None and chance < 0.75 and len(group.members):
            member_id, instance, _ = self._member(group)
            version = 9 if instance is not None else version
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=random.choice((6000, 10_000, 45_000)),
            rebalance_timeout_ms=random.choice((5000, 20_000, 60_000)) if version else -1,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer" if random.random() < 0.9 else random.choice(("", "connect")),
            protocols=self._protocols(group, member_id),
        )
        return self._line("join", version, request)

    def _protocols(
        self, group: ClassicGroup | None, member_id: str
    ) -> list[JoinGroupRequestProtocol]:
        random = self._random
        member = None if group is None else group.members.get(member_id)
        if member is not None and random.random() < 0.6:
            return [
                JoinGroupRequestProtocol(p.name, p.metadata) for p in member.supported_protocols
            ]
        names = random.sample(PROTOCOLS, random.choice((1, 2, 3, 4)))
        if "range" not in names and random.random() < 0.8:
            names.append("range")
        if random.random() < 0.02:
            names = []
        return [JoinGroupRequestProtocol(name, self._subscription()) for name in names]

    def _subscription(self) -> bytes:
        random = self._random
        if random.random() < 0.03:
            return random.choice((b"", b"\0"))
        version = random.choice((0, 1, 3))
        topics: list[str] = random.sample(TOPICS, random.choice((1, 2)))
        message = ConsumerProtocolSubscription(topics=topics)
        return struct.pack(">h", version) + message.encode(version)

    def _sync(self) -> str:
        random = self._random
        group_id, group = self._group()
        version = random.choice((0, 3, 4, 5))
        member_id, instance, generation = self._member(group)
        if group is not None and group.leader_id is not None and random.random() < 0.4:
            leader = group.members.get(group.leader_id)
            if leader is not None:
                member_id, instance = leader.member_id, leader.group_instance_id
        assignments: list[SyncGroupRequestAssignment] = []
        if group is not None and group.is_leader(member_id):
            assignments = [
                SyncGroupRequestAssignment(one, f"for {one}".encode())
                for one in (*group.members.keys(), "stranger")
                if random.random() < 0.9
            ]
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance if version >= 3 else None,
            assignments=assignments,
        )
        if version >= 5 and random.random() < 0.5:
            request.protocol_type = "consumer"
            request.protocol_name = random.choice(("range", "sticky", "roundrobin"))
        return self._line("sync", version, request)

    def _heartbeat(self) -> str:
        group_id, group = self._group()
        member_id, instance, generation = self._member(group)
        return self._line(
            "heartbeat", 4, HeartbeatRequest(group_id, generation, member_id, instance)
        )

    def _leave(self) -> str:
        random = self._random
        group_id, group = self._group()
        members: list[LeaveGroupRequest.MemberIdentity] = []
        for _ in range(random.choice((1, 1, 2))):
            member_id, instance, _ = self._member(group)
            if instance is not None and random.random() < 0.5:
                member_id = ""
            if group is not None and group.pending_join_members and random.random() < 0.3:
                member_id, instance = min(group.pending_join_members), None
            members.append(LeaveGroupRequest.MemberIdentity(member_id, instance))
        return self._line("leave", 5, LeaveGroupRequest(group_id=group_id, members=members))

    def _offset_commit(self) -> str:
        random = self._random
        group_id, group = self._group()
        version = random.choice((2, 4, 5, 6, 7, 8, 9, 10))
        member_id, instance, generation = self._member(group)
        if random.random() < 0.2:
            member_id, instance, generation = "", None, -1
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance if version >= 7 else None,
            topics=[
                OffsetCommitRequestTopic(
                    name,
                    random.choice(TOPIC_IDS),
                    [
                        OffsetCommitRequestPartition(
                            index,
                            random.randrange(-2, 1000),
                            random.choice((-1, 3)) if version >= 6 else -1,
                            random.choice((None, "", "m", "grösse", "\U0001f600" * 5, "x" * 11)),
                        )
                        for index in random.sample((0, 1, 2), random.choice((1, 2)))
                    ],
                )
                for name in random.sample(TOPICS, random.choice((1, 2)))
            ],
        )
        if version <= 4:
            request.retention_time_ms = random.choice((-1, 0, 90_000))
        return self._line("commit_offsets", version, request)

    def _transactional_commit(self) -> str:
        random = self._random
        group_id, group = self._group()
        member_id, instance, generation = self._member(group)
        if random.random() < 0.4:
            member_id, instance, generation = "", None, -1
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group_id,
            producer_id=random.choice((7, 8)),
            producer_epoch=0,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            index, random.randrange(1000), 2, random.choice((None, "t", "x" * 11))
                        )
                        for index in random.sample((0, 1, 2), 2)
                    ],
                )
                for name in random.sample(TOPICS, 1)
            ],
        )
        return self._line("txn", random.choice((5, 6)), request)

    def _marker(self) -> str:
        return f"marker {self._random.choice((7, 8, 9))} {self._random.choice(('commit', 'abort'))}"

    def _fetch(self) -> str:
        random = self._random
        topics = [
            OffsetFetchRequestTopics(name, random.choice(TOPIC_IDS), [0, 1, 2]) for name in TOPICS
        ]
        group = OffsetFetchRequestGroup(
            group_id=random.choice((*GROUPS, "absent")),
            topics=topics if random.random() < 0.7 else None,
        )
        request = OffsetFetchRequest(groups=[group], require_stable=random.random() < 0.5)
        return self._line("fetch", random.choice((9, 10)), request)

    def _delete_offsets(self) -> str:
        random = self._random
        topics = [
            OffsetDeleteRequestTopic(
                name, [OffsetDeleteRequestPartition(one) for one in random.sample((0, 1, 2), 2)]
            )
            for name in random.sample(TOPICS, 2)
        ]
        return self._line("delete_offsets", 0, OffsetDeleteRequest(self._group()[0], topics))

    def _delete_groups(self) -> str:
        return self._text("delete_groups", 2, ",".join((*GROUPS, "absent")))

    def _describe(self) -> str:
        return self._text("describe", self._random.choice((5, 6)), ",".join((*GROUPS, "absent")))

    def _list(self) -> str:
        random = self._random
        states = random.choice(("", "stable,", "Empty, PREPARINGREBALANCE,", "dead,"))
        types = random.choice(("", "classic", "Classic,consumer", "share", "what"))
        return self._text("list", 5, f"{states}/,{types}")

    def _topic_deletion(self) -> str:
        topic_id = uuid_to_text(self._random.choice(TOPIC_IDS[1:]))
        return f"topic {self._random.choice((*TOPICS, '~', '~'))} {topic_id} {self._failure()}"

    def _late(self) -> str:
        return "late"

    def _load(self) -> str:
        is_stable = any(
            isinstance(group, ClassicGroup) and group.is_in(ClassicGroupState.STABLE)
            for _, group in self._driver.shard.state.groups.items()
        )
        return "load" if is_stable else "commit"


def old_record(random: Random) -> str:
    """Return a line with a record of any version, or a tombstone, as a log of old may have it."""
    group_id = random.choice(GROUPS)
    topic, partition = random.choice(TOPICS), random.choice((0, 1))
    kind = random.random()
    key: Message
    value: Message
    if kind < 0.4:
        number, key = 2, GroupMetadataKey(group_id)
        version, value = random.choice((0, 1, 2, 3, 4)), _group_metadata(random)
    elif kind < 0.6:
        number, key = 0, LegacyOffsetCommitKey(group_id, topic, partition)
        version, value = 0, LegacyOffsetCommitValue(random.randrange(99), "old", 1000)
    else:
        number, key = 1, OffsetCommitKey(group_id, topic, partition)
        version = random.choice((0, 1, 2, 3, 4))
        value = OffsetCommitValue(
            random.randrange(99), random.choice((-1, 4)), "m", 1000, random.choice((-1, 200_000))
        )
    data = "~"
    if random.random() < 0.8:
        data = (struct.pack(">h", version) + value.encode(version)).hex()
    producer = random.choice((-1, -1, 7)) if number != 2 else -1
    return f"raw {producer} {(struct.pack('>h', number) + key.encode(0)).hex()} {data}"


def _group_metadata(random: Random) -> GroupMetadataValue:
    ids = random.sample(("m1", "m2", "m3", "m4"), random.choice((0, 1, 3)))
    subscription = struct.pack(">h", 0) + ConsumerProtocolSubscription(topics=["one"]).encode(0)
    members = [
        GroupMetadataValue.MemberMetadata(
            member_id=one,
            group_instance_id=random.choice((None, f"of {one}".replace(" ", "-"))),
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=30_000,
            session_timeout=random.choice((6000, 10_000)),
            subscription=random.choice((subscription, b"")),
            assignment=b"a",
        )
        for one in ids
    ]
    return GroupMetadataValue(
        protocol_type=random.choice(("consumer", "consumer", "connect")),
        generation=random.randrange(9),
        protocol="range" if ids else None,
        leader=ids[0] if ids else None,
        current_state_timestamp=random.choice((-1, 2000)),
        members=members,
    )
