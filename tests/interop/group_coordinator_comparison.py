"""Kafka's own GroupCoordinatorShard and ours under the same steps."""

import re
from collections import Counter
from contextlib import AbstractContextManager
from typing import Final
from uuid import UUID

from tests.interop.group_coordinator_driver import Driver
from tests.interop.line_oracle import Oracle, line_oracle
from tests.support.kafka.java import Java

from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kvorum.wire.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

HIDDEN_TOPICS: Final = frozenset({"hidden"})
"""Topics that no client may describe."""
STEPS_SHOWN: Final = 12
"""The number of steps before a difference that its message shows."""
_MEMBER_UUID: Final = re.compile(
    r"(?:client|i\d)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
_STATIC_MEMBER: Final = re.compile(r"^error \d+ Static member (\S{22}) ")
_JOIN_ANSWER: Final = re.compile(r"\bjoin:\w+:([0-9a-f]+)")
_MEMBER_KEY: Final = re.compile(r"\b0005([0-9a-f]+):[0-9a-f]")
"""The key of a record of a member that is not its end, without the type."""
UNSEEN_ID: Final = uuid_to_text(b"u" * 16)
"""An id for a member that is refused without its id being shown."""
_COMMITTED_OFFSETS: Final = re.compile(r"( offsets \S*) offsets \S*")
_SHOWN: Final = {
    "state": re.compile(r" group \w+ (\w+) \w+ \d+ "),
    "consumer": re.compile(r" consumer \w+ (\w+) epoch"),
    "share": re.compile(r" share \w+ (\w+) epoch"),
    "subscriptions": re.compile(r" share .*? (\w+geneous) names"),
    "member": re.compile(r"<-?\d+ (\w+) has"),
    "classic member": re.compile(r" classic@\S+ \S+ (\w+) has \S* revokes"),
}
"""The states that answers show: of classic, consumer and share groups and of their members."""
_KIND: Final = re.compile(r"^(?:fire [a-z]+|\w+)")
_CHANGES: Final = {
    "upgrade": re.compile(r"^0002\w+:~ 0005"),
    "downgrade": re.compile(r" 0003\w+:~ 0002\w+:\w{9}"),
    "stale downgrade": re.compile(r" 0003\w+:\w.* 0003\w+:~ 0002\w+:\w{9}"),
    "fresh downgrade": re.compile(
        r"^(?:(?! 0003\w+:\w).)*\b0005\w+:\w(?:(?! 0003\w+:\w).)* 0003\w+:~ 0002\w+:\w{9}"
    ),
}
"""The changes of a group's protocol, by the types of records, and whether they are tombstones.

A downgrade in which a static member comes back with the classic protocol is stale if the group has
a new epoch, and fresh if not.
"""
_HEX: Final = re.compile(r"\b(?:[0-9a-f]{2}){8,}\b")


def group_coordinator_oracle(java: Java) -> AbstractContextManager[Oracle]:
    return line_oracle(java, "GroupCoordinatorOracle")


class MemberIds:
    """Has our shard make the random ids that Kafka's has made, as its answers show them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._next: list[str] = []

    def learn(self, answer: str) -> None:
        texts = [answer]
        texts += (bytes.fromhex(one).decode("latin-1") for one in _HEX.findall(answer))
        found = dict.fromkeys(uuid for text in texts for uuid in _MEMBER_UUID.findall(text))
        self._next = [uuid for uuid in found if uuid not in self._seen]
        self._seen.update(found)

    def learn_heartbeat(self, answer: str) -> None:
        """Learn the id of a member of a consumer group, which is the text of an id alone."""
        if answer.startswith("error "):
            found = _STATIC_MEMBER.search(answer)
            member_id = UNSEEN_ID if found is None else found[1]
        else:
            data = bytes.fromhex(answer.partition(" ")[0])
            member_id = ConsumerGroupHeartbeatResponse.decode(data, 1).member_id or UNSEEN_ID
        self._next = [str(UUID(bytes=uuid_from_text(member_id)))]

    def learn_join(self, answer: str) -> None:
        """Learn the id of a new member, be it of a classic group or of a consumer group."""
        self.learn(answer)
        if not self._next:
            found = [*_ids_to_join_with(answer), *_ids_of_new_members(answer), UNSEEN_ID]
            member_id = next(one for one in found if len(one) == len(UNSEEN_ID))
            self._next = [str(UUID(bytes=uuid_from_text(member_id)))]

    def new_uuid(self) -> str:
        return self._next.pop()


def _ids_to_join_with(answer: str) -> list[str]:
    """Return the ids with which members of consumer groups are asked to join again."""
    responses = (
        JoinGroupResponse.decode(bytes.fromhex(one), 9) for one in _JOIN_ANSWER.findall(answer)
    )
    return [one.member_id for one in responses if one.error_code == ErrorCode.MEMBER_ID_REQUIRED]


def _ids_of_new_members(answer: str) -> list[str]:
    """Return the ids of members of consumer groups that the records of an answer have."""
    keys = map(bytes.fromhex, _MEMBER_KEY.findall(answer))
    return [ConsumerGroupMemberMetadataKey.decode(key, 0).member_id for key in keys]


class Comparison:
    """Kafka's shard and ours, which must answer each step alike."""

    def __init__(self, oracle: Oracle, settings: GroupCoordinatorSettings) -> None:
        self._oracle = oracle
        self._ids = MemberIds()
        self._steps: list[str] = []
        self.kinds: Counter[str] = Counter()
        """The number of occurrences of each kind of step, state of groups and error."""
        oracle.answer(_new(settings))
        self.driver = Driver(settings, self._ids.new_uuid, HIDDEN_TOPICS)

    def step(self, line: str) -> str:
        """Have both do a step; return the answer."""
        self._steps.append(line)
        theirs = self._oracle.answer(line)
        if line.startswith("consumer_heartbeat 0 "):
            self._ids.learn_heartbeat(theirs)
        elif line.startswith("join "):
            self._ids.learn_join(theirs)
        else:
            self._ids.learn(theirs)
        ours = self.driver.answer(line)
        if self.driver.has_reverted:
            ours, theirs = _without_committed(ours), _without_committed(theirs)
        steps = "\n".join(self._steps[-STEPS_SHOWN:])
        assert ours == theirs, f"{steps}\nours:   {ours}\ntheirs: {theirs}"
        self.kinds[_KIND.findall(line)[0]] += 1
        for kind, pattern in _SHOWN.items():
            self.kinds.update(f"{kind} {one}" for one in pattern.findall(ours))
        self.kinds.update(re.findall(r"^error -?\d+", ours))
        records = ours.split(" | ")[1]
        self.kinds.update(kind for kind, pattern in _CHANGES.items() if pattern.search(records))
        return theirs


def _new(settings: GroupCoordinatorSettings) -> str:
    """Return the line that begins a shard with these settings."""
    consumer = settings.consumer
    pairs = {
        "group.max.size": settings.group_max_size,
        "group.initial.rebalance.delay.ms": settings.group_initial_rebalance_delay_ms,
        "offset.metadata.max.bytes": settings.offset_metadata_max_bytes,
        "offsets.retention.minutes": settings.offsets_retention_ms // 60_000,
        "group.consumer.max.size": consumer.max_size,
        "group.consumer.assignors": ",".join(consumer.assignors),
        "group.consumer.assignment.interval.ms": consumer.assignment_interval_ms,
        "group.consumer.regex.refresh.interval.ms": consumer.regex_refresh_interval_ms,
        "group.consumer.migration.policy": consumer.migration_policy.value,
        "group.share.max.size": settings.share.max_size,
        "group.share.assignment.interval.ms": settings.share.assignment_interval_ms,
        "group.share.initialize.retry.interval.ms": settings.share.initialize_retry_ms,
        "hidden.topics": ",".join(HIDDEN_TOPICS),
    }
    return " ".join(["new", *(f"{name}={value}" for name, value in pairs.items())])


def _without_committed(answer: str) -> str:
    """Drop the committed offsets of each group.

    After a removal was taken back because its append failed, Kafka's timeline maps lose entries of
    the committed snapshot when these are removed again; ours do not.
    """
    return _COMMITTED_OFFSETS.sub(r"\1", answer)
