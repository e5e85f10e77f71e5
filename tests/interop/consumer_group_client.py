"""A made-up consumer of a consumer group: what it asks for, and what it takes from the answers."""

from dataclasses import dataclass, field
from random import Random
from typing import Final

from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

NAMES: Final = ("one", "two", "three", "four", "Five", "absent")
REGEXES: Final = ("one|two", "t.*", ".*", "o+ne", "t[hw].*", "four", "nothing", "-six_6[.]")
INVALID_REGEXES: Final = (
    "(",
    "[a",
    "*",
    "(?=a)",
    "(?<=a)",
    "a**",
    ")",
    "a{2,1}",
    "[b-a]",
    "\\",
    "(?P<n>",
    "a\\q",
    "\\x{",
    "\\p{Foo}",
    "x{1001}",
)
ASSIGNORS: Final = (None, None, "uniform", "range")
REBALANCE_TIMEOUTS_MS: Final = (5_000, 30_000, 60_000)
LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2
FENCED: Final = frozenset({25, 69, 82, 110})
"""Codes after which a consumer begins again: it is unknown, or its epoch is not the right one."""

Owned = dict[bytes, frozenset[int]]


@dataclass
class Client:
    """A consumer; `owned` are the partitions that it has, by topic id."""

    group_id: str
    member_id: str
    instance_id: str | None
    names: list[str] | None
    regex: str | None
    rebalance_timeout_ms: int = 30_000
    assignor: str | None = None
    rack_id: str | None = None
    epoch: int = 0
    owned: Owned = field(default_factory=dict[bytes, frozenset[int]])
    assigned: Owned | None = None
    """An assignment of which nothing has been said yet to the group."""
    last_request: ConsumerGroupHeartbeatRequest | None = None
    is_answer_lost: bool = False

    def request(self, random: Random) -> ConsumerGroupHeartbeatRequest:
        """Return the next request, which is sometimes not quite right."""
        if self.last_request is not None and self.is_answer_lost and random.random() < 0.6:
            return self.last_request
        if self.epoch <= 0:
            request = self._join()
        elif random.random() < 0.1:
            request = self._leave(random)
        elif random.random() < 0.2:
            self._change(random)
            request = self._full(random)
        elif random.random() < 0.15 or self.is_answer_lost:
            request = self._full(random)
        else:
            request = self._partial(random)
        if self.member_id and random.random() < 0.05:
            request.member_epoch += random.choice((-2, -1, 1))
        self.last_request = request
        return request

    def departure(self) -> ConsumerGroupHeartbeatRequest:
        """Return the request with which the consumer leaves for good."""
        self.last_request = self._named(LEAVE)
        return self.last_request

    def learn(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Take a response without an error."""
        self.is_answer_lost = False
        assert response.member_id is not None
        self.member_id = response.member_id
        self.epoch = response.member_epoch
        if self.epoch <= 0:
            self.owned, self.assigned = {}, None
        if response.assignment is not None:
            self.assigned = {
                one.topic_id: frozenset(one.partitions)
                for one in response.assignment.topic_partitions
            }

    def refused(self, code: int) -> None:
        """Take an error."""
        self.is_answer_lost = False
        if code in FENCED:
            self.epoch, self.owned, self.assigned = 0, {}, None

    def subscribe(self, random: Random) -> None:
        """Choose names, a regular expression, or both."""
        self.names = self.regex = None
        chance = random.random()
        if chance < 0.7:
            self.names = sorted(random.sample(NAMES, random.choice((0, 1, 2, 2, 3))))
        if chance > 0.6:
            self.regex = random.choice(REGEXES)
            if random.random() < 0.05:
                self.regex = random.choice(INVALID_REGEXES)

    def _change(self, random: Random) -> None:
        chance = random.random()
        if chance < 0.6:
            had_names, had_regex = self.names is not None, self.regex is not None
            self.subscribe(random)
            # An absent part means no change, an empty one that nothing is left.
            if had_names and self.names is None:
                self.names = []
            if had_regex and self.regex is None:
                self.regex = ""
        elif chance < 0.75:
            self.assignor = random.choice(ASSIGNORS)
        elif chance < 0.85:
            self.rack_id = random.choice(("r0", "r1"))
        else:
            self.rebalance_timeout_ms = random.choice(REBALANCE_TIMEOUTS_MS)

    def _named(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )

    def _join(self) -> ConsumerGroupHeartbeatRequest:
        self.owned, self.assigned = {}, None
        request = self._named(0)
        self._say_all(request)
        request.topic_partitions = []
        return request

    def _full(self, random: Random) -> ConsumerGroupHeartbeatRequest:
        request = self._named(self.epoch)
        self._say_all(request)
        self._say_owned(request, random)
        return request

    def _partial(self, random: Random) -> ConsumerGroupHeartbeatRequest:
        request = self._named(self.epoch)
        if self.assigned is not None and random.random() < 0.7:
            self._say_owned(request, random)
        return request

    def _leave(self, random: Random) -> ConsumerGroupHeartbeatRequest:
        epochs = (LEAVE,) if self.instance_id is None else (LEAVE, LEAVE_FOR_A_WHILE)
        return self._named(random.choice(epochs))

    def _say_all(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.rebalance_timeout_ms = self.rebalance_timeout_ms
        request.subscribed_topic_names = self.names
        request.subscribed_topic_regex = self.regex
        request.server_assignor = self.assignor
        request.rack_id = self.rack_id

    def _say_owned(self, request: ConsumerGroupHeartbeatRequest, random: Random) -> None:
        if self.assigned is not None and random.random() < 0.9:
            self.owned, self.assigned = self.assigned, None
        owned = dict(self.owned)
        if owned and random.random() < 0.1:
            owned.popitem()
        elif random.random() < 0.05:
            owned[random.choice([*owned, bytes(16)])] = frozenset({0, 1})
        request.topic_partitions = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, sorted(partitions))
            for topic_id, partitions in owned.items()
        ]
