"""A member of a consumer group (KIP-848): it heartbeats, owns what it is given, and gives it up."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from random import Random
from typing import Final

from kvorum.groups.consumer_group.member import LEAVE_STATIC_EPOCH
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.consumer_group_ledger import ConsumerGroupLedger, TopicIdPartition
from kvorum.simulation.partitions.consumer_group_settings import ClusterConsumerGroupSettings
from kvorum.simulation.partitions.groups import GroupClient
from kvorum.simulation.partitions.settings import RESTLESS_UNTIL_MS, TOPIC, TOPIC_ID
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

CONSUMER_GROUP: Final = "consumers"
GROWING_TOPIC: Final = "growing"
"""A topic that comes and goes, and gets more partitions while it is there."""
REGEX: Final = f"{TOPIC}|grow.*"
GOES: Final = 0.015
SLEEPS: Final = 0.02
SLEEP_MS_MAX: Final = 1_400
SUBSCRIBES_ANEW: Final = 0.01
STAYS_AWAY: Final = 0.4
AWAY_MS_MAX: Final = 1_200
KEEPS_AT_FIRST: Final = 0.5
"""The share of its steps at which a member has not given up yet what it has to."""
USES_OFFSETS: Final = 0.3
READS: Final = 0.5
COMMITS_AWAKE: Final = 0.5
"""The share of members that commit as the first they do after they have slept."""
_COMES_BACK_MS_MAX: Final = 150
"""The time after which one that is refused tries again."""
_FIRST_WITH_REGEX: Final = 1
_FIRST_COMMIT_WITH_EPOCH: Final = 9
_LEAVE_EPOCHS: Final = (None, LEAVE_EPOCH, LEAVE_STATIC_EPOCH)
_IS_FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""The codes after which a member drops all that it owns, and joins again."""
_ENDS: Final = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID})
"""The codes after which a process ends, as another one has its instance id."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a member names, and the regular expression that it has; empty for none."""

    names: tuple[str, ...]
    regex: str = ""


_BY_NAME: Final = (
    Subscription((TOPIC,)),
    Subscription((TOPIC, GROWING_TOPIC)),
    Subscription((GROWING_TOPIC,)),
)
_BY_REGEX: Final = (Subscription((), REGEX), Subscription((TOPIC,), REGEX))


class ConsumerMember(GroupClient):
    """One consumer: a process after the other, each with an id of its own.

    It falls asleep at any moment, and may end at any moment. A static one comes back by its
    `instance_id` (KIP-345). Two may have one instance id by mistake: the one that is refused ends.
    """

    def __init__(
        self,
        around: BrokerSurroundings,
        ledger: ConsumerGroupLedger,
        settings: ClusterConsumerGroupSettings,
        *,
        random: Random,
        instance_id: str | None,
    ) -> None:
        super().__init__(around, CONSUMER_GROUP)
        self._random = random
        self._members = ledger
        self._rebalance_timeout_ms = settings.rebalance_timeout_ms
        self.instance_id = instance_id
        if instance_id is not None:
            self._count_instances(instance_id, 1)
        self._version = self.version_of(ConsumerGroupHeartbeatRequest)
        self._commit_version = self.version_of(OffsetCommitRequest, lowest=_FIRST_COMMIT_WITH_EPOCH)
        self._assignor = settings.assignor
        self.is_over = False
        """Whether it has ended for good."""
        self._asleep_until_ms = 0.0
        self._commits_next = False
        self._begin_process()

    def _count_instances(self, instance_id: str, change: int) -> int:
        clients = self.ledger.clients
        clients[instance_id] = clients.get(instance_id, 0) + change
        return clients[instance_id]

    def _begin_process(self) -> None:
        """Be another process, which draws the id of its member and what it subscribes to."""
        self.membership = self._members.join(self._new_id())
        self.subscription = self._draw_subscription()
        self._join_anew()

    def _new_id(self) -> str:
        return uuid_to_text(self._random.randbytes(16))

    def _join_anew(self) -> None:
        """Own nothing, and say all with the next heartbeat."""
        self.membership = self._members.join(self.membership.member_id)
        self.assigned: AbstractSet[TopicIdPartition] = frozenset()
        """All that its last answer gave."""
        self._said: AbstractSet[TopicIdPartition] = frozenset()
        self._says_all = True

    def _draw_subscription(self) -> Subscription:
        has_regex = self._version >= _FIRST_WITH_REGEX
        return self._random.choice((*_BY_NAME, *_BY_REGEX) if has_regex else _BY_NAME)

    @property
    def member_id(self) -> str:
        """The id of its present process's member."""
        return self.membership.member_id

    def describe(self) -> str:
        """Return where it stands, in words."""
        return (
            f"{self.membership} owns {sorted(self.membership.owned)}, "
            f"told {sorted(self.assigned)}, {self.subscription}, last answer {self.last_code}"
        )

    # --- steps ---

    def step(self) -> None:
        """Do what comes next; end, leave, subscribe to other topics or fall asleep now and then."""
        random, now_ms = self._random, self.around.now_ms
        if self.is_over or now_ms < self._asleep_until_ms:
            return
        if now_ms < RESTLESS_UNTIL_MS:
            if random.random() < GOES:
                away_ms = random.uniform(0, AWAY_MS_MAX) if random.random() < STAYS_AWAY else 0.0
                self.go(away_ms, leave_epoch=random.choice(_LEAVE_EPOCHS))
                return
            if not self.is_waiting and random.random() < SLEEPS:
                self._asleep_until_ms = now_ms + random.uniform(0, SLEEP_MS_MAX)
                self._commits_next = random.random() < COMMITS_AWAKE
                return
            if not self.is_waiting and random.random() < SUBSCRIBES_ANEW:
                self.subscription, self._says_all = self._draw_subscription(), True
        coordinator = self.leader()
        if coordinator is not None and not self.is_waiting:
            self._go_on(coordinator)

    def _go_on(self, coordinator: int) -> None:
        member, random = self.membership, self._random
        if not member.owned <= self.assigned and random.random() >= KEEPS_AT_FIRST:
            # Partitions are dropped before the coordinator hears of it.
            before = len(member.owned)
            member.owned &= self.assigned
            self.around.ledger.counts["consumers: dropped partitions"] += before - len(member.owned)
        partitions = sorted(index for topic_id, index in member.owned if topic_id == TOPIC_ID)
        if partitions and (self._commits_next or random.random() < USES_OFFSETS):
            self._use_offsets(coordinator, random.choice(partitions))
        else:
            self._heartbeat(coordinator)

    def _use_offsets(self, coordinator: int, partition: int) -> None:
        """Commit an offset of one of its partitions, or read it."""
        is_read = not self._commits_next and self._random.random() < READS
        self._commits_next = False
        if is_read or self.around.now_ms > RESTLESS_UNTIL_MS:
            self.read(coordinator, partition)
            return
        self.commit_as_member(
            coordinator,
            partition,
            epoch=self.membership.epoch,
            member_id=self.member_id,
            instance_id=self.instance_id,
            is_fine=self._is_fine,
            version=self._commit_version,
        )

    def go(self, away_ms: float, *, leave_epoch: int | None) -> None:
        """End a process, which leaves with an epoch or is killed; the next one begins later."""
        coordinator, member = self.leader(), self.membership
        self.give_up()
        self._members.end(member.member_id)
        if self.instance_id is None and leave_epoch == LEAVE_STATIC_EPOCH:
            leave_epoch = LEAVE_EPOCH
        if leave_epoch is not None and member.epoch > JOIN_EPOCH and coordinator is not None:
            farewell = ConsumerGroupHeartbeatRequest(
                self.group_id, member.member_id, leave_epoch, self.instance_id
            )
            self.send(coordinator, farewell, lambda _: None, version=self._version)
            self.around.ledger.counts[f"consumers: left with {leave_epoch}"] += 1
        self._begin_process()
        self._asleep_until_ms = self.around.now_ms + away_ms

    # --- heartbeats ---

    def _heartbeat(self, coordinator: int) -> None:
        member = self.membership
        owned = frozenset(member.owned)
        request = ConsumerGroupHeartbeatRequest(
            self.group_id, self._id_to_say(), member.epoch, self.instance_id
        )
        if self._says_all:
            self._say_all(request)
        if self._says_all or owned != self._said:
            request.topic_partitions = _topic_partitions(owned)
        member.unheard_from_ms = min(member.unheard_from_ms, self.around.now_ms)

        def on_answer(answer: Message | None) -> None:
            if not isinstance(answer, ConsumerGroupHeartbeatResponse):
                return
            if self._is_fine(answer.error_code):
                self._says_all, self._said = False, owned
                self._on_answer(answer)

        # Without an answer it is not known what the coordinator has heard.
        self._says_all = True
        self.send(coordinator, request, on_answer, version=self._version)

    def _id_to_say(self) -> str:
        """Return its id; the coordinator chooses that of a member of the first version."""
        is_first = self._version < _FIRST_WITH_REGEX and self.membership.epoch == JOIN_EPOCH
        return "" if is_first else self.member_id

    def _say_all(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.rebalance_timeout_ms = self._rebalance_timeout_ms
        request.subscribed_topic_names = list(self.subscription.names)
        if self._version >= _FIRST_WITH_REGEX:
            request.subscribed_topic_regex = self.subscription.regex
        request.server_assignor = self._assignor

    def _on_answer(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.member_id is not None and answer.member_id != self.member_id:
            self._members.end(self.member_id)
            unheard_from_ms = self.membership.unheard_from_ms
            self.membership = self._members.join(answer.member_id)
            self.membership.unheard_from_ms = unheard_from_ms
        if answer.assignment is not None:
            self.assigned = _partitions_of(answer.assignment)
        self._members.on_told(
            self.membership,
            epoch=answer.member_epoch,
            assigned=self.assigned,
            now_ms=self.around.now_ms,
        )
        self.around.ledger.counts["consumers: heartbeats"] += 1

    def _is_fine(self, code: int) -> bool:
        """Return whether a code is NONE; after others the member joins again, or ends."""
        self.last_code = code
        if code in _ENDS:
            if self.instance_id is not None and self._count_instances(self.instance_id, 0) > 1:
                self._count_instances(self.instance_id, -1)
                self._members.end(self.member_id)
                self.is_over = True
                return False
            self.go(self._random.uniform(0, _COMES_BACK_MS_MAX), leave_epoch=None)
        elif code in _IS_FENCED:
            self.around.ledger.counts["consumers: fenced"] += self.membership.epoch > JOIN_EPOCH
            self._join_anew()
        return code == ErrorCode.NONE


def _partitions_of(
    assignment: ConsumerGroupHeartbeatResponse.Assignment,
) -> frozenset[TopicIdPartition]:
    return frozenset(
        (topic.topic_id, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )


def _topic_partitions(
    owned: AbstractSet[TopicIdPartition],
) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(owned):
        by_topic.setdefault(topic_id, []).append(index)
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, partitions)
        for topic_id, partitions in by_topic.items()
    ]
