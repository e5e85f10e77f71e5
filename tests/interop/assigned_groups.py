"""Random groups over time, and the targets that our assignors give their members."""

import base64
from collections.abc import Iterable
from random import Random
from typing import Final

from kvorum.coordinator.timeline_order import timeline_order
from kvorum.groups.assignors.assignors_by_name import ASSIGNORS
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import (
    Assignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignor,
    PartitionAssignorError,
)
from kvorum.groups.assignors.simple_assignor import SimpleAssignor
from kvorum.metadata.java_hash import JavaHashMap
from kvorum.wire.uuid_text import uuid_to_text

_MEMBER_COUNT_MAX: Final = 60
_TOPIC_COUNT_MAX: Final = 30
_PARTITION_COUNTS: Final = (1, 2, 3, 7, 12, 13, 24, 40, 100, 300)
_NAMES: Final = tuple(f"topic-{number}" for number in range(_TOPIC_COUNT_MAX))
_MISTAKEN_RATIO: Final = 0.05
FAILED: Final = "!"
"""The answer where the assignor fails."""
_FIRST_CHARACTERS: Final = ("a", "Z", "\uffee", "\U0001f600")
"""Java orders the last two by their UTF-16 units: the second of them comes first."""


class AssignedGroup:
    """A group whose topics, members and subscriptions change, with the lines for the oracle."""

    def __init__(self, random: Random, *, is_share: bool = False) -> None:
        """Begin without topics and members; a share group has the simple assignor."""
        self._random = random
        self._is_share = is_share
        self._assignable: dict[bytes, set[int]] | None = {} if is_share else None
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._members: dict[str, tuple[str | None, list[str]]] = {}
        self._most_members = 0
        self._targets: dict[str, Assignment] = {}
        self._member_count = random.choice((1, 3, 8, 20, _MEMBER_COUNT_MAX))
        self._topic_count = random.choice((1, 2, 5, 12, _TOPIC_COUNT_MAX))
        self._assignor = "simple"
        if not is_share:
            self._assignor = random.choice(("range", "uniform", "uniform", "uniform"))
        self._are_alike = random.random() < 0.6
        self._shared_names = self._some_names()
        self.lines = ["group"]

    def step(self) -> str:
        """Change the group and assign its partitions; return the records of the targets."""
        random = self._random
        own = self._make_assignable if self._is_share else self._replace
        changes = (
            *(self._join, self._join, self._leave, own, self._resubscribe),
            *(self._add_topic, self._add_topic, self._grow_topic, self._delete_topic),
        )
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            random.choice(changes)()
        if not self._members:
            self._join()
        if not self._is_share and random.random() < 0.02:
            self._assignor = random.choice(("range", "uniform"))
        return self._assign()

    def _is_taken_for_homogeneous(self) -> bool:
        """Return whether all members have the same topics, or are thought to have them.

        Kafka thinks so for a while when a member's regular expression is not resolved yet.
        """
        first, *others = (set(names) for _, names in self._members.values())
        return all(names == first for names in others) or self._random.random() < _MISTAKEN_RATIO

    def _some_names(self) -> list[str]:
        names = self._random.sample(_NAMES[: self._topic_count + 2], self._topic_count)
        return (
            names[: self._random.randint(0, len(names))] if self._random.random() < 0.3 else names
        )

    def _new_id(self) -> str:
        random_bytes = self._random.randbytes(16)
        first = self._random.choice(_FIRST_CHARACTERS)
        return first + base64.urlsafe_b64encode(random_bytes).decode().rstrip("=")

    def _set_member(self, member_id: str, instance_id: str | None, names: list[str]) -> None:
        names = self._random.sample(names, len(names))
        self._members[member_id] = (instance_id, names)
        self._most_members = max(self._most_members, len(self._members))
        self.lines.append(f"member {member_id} {instance_id or '-'} {','.join(names) or '-'}")

    def _names_of_member(self) -> list[str]:
        return self._shared_names if self._are_alike else self._some_names()

    def _join(self) -> None:
        for _ in range(self._random.randint(1, max(1, self._member_count // 4))):
            if len(self._members) == self._member_count:
                return
            instance_id = self._new_id() if self._random.random() < 0.3 else None
            self._set_member(self._new_id(), instance_id, self._names_of_member())

    def _remove(self, member_id: str) -> None:
        del self._members[member_id]
        self._targets.pop(member_id, None)
        self.lines.append(f"remove {member_id}")

    def _leave(self) -> None:
        count = self._random.randint(0, len(self._members) // 3)
        for member_id in self._random.sample(list(self._members), count):
            self._remove(member_id)

    def _replace(self) -> None:
        static = [one for one, (instance_id, _) in self._members.items() if instance_id is not None]
        old_ids = [member_id for member_id in static if member_id in self._targets]
        if not old_ids:
            return
        old_id, new_id = self._random.choice(old_ids), self._new_id()
        instance_id, names = self._members.pop(old_id)
        self._targets[new_id] = self._targets.pop(old_id)
        self.lines.append(f"replace {old_id} {new_id}")
        self._set_member(new_id, instance_id, names)

    def _resubscribe(self) -> None:
        random = self._random
        if random.random() < 0.1:
            self._are_alike = not self._are_alike
        if self._are_alike:
            self._shared_names = self._some_names()
            changed = list(self._members)
        else:
            changed = random.sample(list(self._members), len(self._members) // 4)
        for member_id in changed:
            self._set_member(member_id, self._members[member_id][0], self._names_of_member())

    def _set_topic(self, name: str, topic_id: bytes, count: int) -> None:
        self._topics[name] = (topic_id, count)
        self.lines.append(f"topic {name} {uuid_to_text(topic_id)} {count}")
        if self._assignable is not None and self._random.random() < 0.7:
            self._set_assignable(topic_id, range(count))

    def _add_topic(self) -> None:
        name = self._random.choice(_NAMES[: self._topic_count])
        if name not in self._topics:
            self._set_topic(
                name, self._random.randbytes(16), self._random.choice(_PARTITION_COUNTS)
            )

    def _grow_topic(self) -> None:
        if self._topics:
            name = self._random.choice(list(self._topics))
            topic_id, count = self._topics[name]
            self._set_topic(name, topic_id, count + self._random.choice((1, 5, 20)))

    def _make_assignable(self) -> None:
        """Make all partitions of most topics assignable, or some; seldom fewer than before."""
        assert self._assignable is not None
        for topic_id, count in self._topics.values():
            chance = self._random.random()
            if chance < 0.7:
                self._set_assignable(topic_id, range(count))
            elif chance < 0.8:
                self._set_assignable(topic_id, self._random.sample(range(count), count // 2))

    def _set_assignable(self, topic_id: bytes, partitions: Iterable[int]) -> None:
        assert self._assignable is not None
        before = self._assignable.setdefault(topic_id, set())
        if self._random.random() < 0.05:
            before.clear()
        before.update(partitions)
        numbers = ",".join(map(str, before)) or "-"
        self.lines.append(f"assignable {uuid_to_text(topic_id)} {numbers}")

    def _delete_topic(self) -> None:
        if self._topics and self._random.random() < 0.3:
            name = self._random.choice(list(self._topics))
            del self._topics[name]
            self.lines.append(f"delete {name}")

    def _assign(self) -> str:
        is_homogeneous = self._is_taken_for_homogeneous()
        kind = "HOMOGENEOUS" if is_homogeneous else "HETEROGENEOUS"
        self.lines.append(f"assign {self._assignor} {kind}")
        members: JavaHashMap[MemberSubscription] = JavaHashMap()
        for member_id in timeline_order(self._members, self._most_members):
            members.set(member_id, self._subscription(member_id))
        counts = dict(self._topics.values())
        assignor: PartitionAssignor = SimpleAssignor()
        if not self._is_share:
            assignor = ASSIGNORS[self._assignor]
        try:
            targets = assignor.assign(
                GroupSpec(members, is_homogeneous, counts, assignable=self._assignable)
            )
        except PartitionAssignorError:
            return FAILED
        records: list[str] = []
        member_ids = members.keys()
        for member_id in member_ids:
            target = targets.get(member_id, {})
            if self._targets.get(member_id) != target:
                self._targets[member_id] = target
                records.append(f"{member_id}={_text(target)}")
        return " ".join(records)

    def _subscription(self, member_id: str) -> MemberSubscription:
        instance_id, names = self._members[member_id]
        ordered = names_in_order(names)
        topic_ids = OrderedSet(self._topics[name][0] for name in ordered if name in self._topics)
        return MemberSubscription(
            topic_ids=topic_ids,
            assigned=self._targets.get(member_id, {}),
            instance_id=instance_id,
            missing_topic_count=len(ordered) - len(topic_ids),
        )


def _text(target: Assignment) -> str:
    return ";".join(
        f"{uuid_to_text(topic_id)}:{','.join(map(str, partitions))}"
        for topic_id, partitions in target.items()
    )
