"""Requests of members of share groups for records, by chance: mostly right, often nearly right.

Nothing of a script waits for time: locks hold for an hour, and a fetch has its records at once or
not at all. One thing is not done when it is answered, on either broker: a session that ends gives
back its records afterwards. `Script.released` names them, for the caller to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, cast

from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch

TOPICS: Final[Mapping[str, int]] = {"one": 2, "two": 1}
"""The topics, with their numbers of partitions; there is one more, which is unknown."""
UNKNOWN: Final = "unknown"
GROUPS: Final = ("shared", "other")
MEMBERS: Final[Mapping[str, Sequence[tuple[str, int]]]] = {
    "alice": [("one", 0), ("one", 1), ("two", 0)],
    "bob": [("one", 0)],
    "carol": [("two", 0)],
}
"""The partitions of each member. Which of several is the first one, Kafka leaves to chance."""
ALL_RECORDS: Final = 10_000
VERSIONS: Final = (1, 2)
WAIT_MS: Final = 5
NO_ACK: Final = 0
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
TIMESTAMP_MS: Final = 1_700_000_000_000
MAX_BYTES: Final = 10_000_000
Answer: TypeAlias = Any


@dataclass
class Side:
    """One of the two brokers; each has given the topics ids of its own."""

    client: RawClient
    topic_ids: Mapping[str, bytes]
    names: Mapping[bytes, str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = {topic_id: name for name, topic_id in self.topic_ids.items()}


class Batches(NamedTuple):
    """Acknowledgements of one partition: first offset, last offset, types."""

    topic: str
    partition: int
    batches: Sequence[tuple[int, int, Sequence[int]]]


class Delivered(NamedTuple):
    """Records that a member was given, with the number of their deliveries so far."""

    group: str
    place: tuple[str, int]
    offsets: range
    delivery_count: int


@dataclass
class Member:
    """The state of a member as far as the script knows: its next epoch, and its records.

    `places` are the partitions of its session; the end of the session gives back the records of
    these alone. `delivered` has all that it was given since that was done with them last.
    """

    epoch: int = 0
    places: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    delivered: list[Delivered] = field(default_factory=list[Delivered])
    held: dict[tuple[str, int], list[tuple[int, int]]] = field(
        default_factory=dict[tuple[str, int], list[tuple[int, int]]]
    )

    def change_places(self, fetch: Fetch) -> None:
        """Change the session's partitions as a fetch wishes."""
        if fetch.epoch == 0:
            self.places.clear()
        self.places.update(fetch.listed)
        self.places.update((one.topic, one.partition) for one in fetch.acknowledged)
        self.places.difference_update(fetch.forgotten)

    def take_released(self) -> list[Delivered]:
        """Return the records of the session's partitions, and forget them."""
        released = [one for one in self.delivered if one.place in self.places]
        self.delivered = [one for one in self.delivered if one.place not in self.places]
        return released


class Append(NamedTuple):
    """Records that are appended to a partition."""

    topic: str
    partition: int
    counts: Sequence[int]
    compression: Compression

    def take(self, side: Side) -> Answer:
        """Append them, each count as a batch of its own."""
        codes: list[int] = []
        for count in self.counts:
            records = [RecordData(b"%d" % one, None, TIMESTAMP_MS) for one in range(count)]
            batch = bytes(build_batch(records, BatchOptions(compression=self.compression)))
            data = ProduceRequest.PartitionProduceData(self.partition, batch)
            topic = ProduceRequest.TopicProduceData(self.topic, partition_data=[data])
            answered = side.client.ask(
                ProduceRequest(None, -1, 30_000, [topic]), ProduceResponse, 12
            )
            codes.append(answered.responses[0].partition_responses[0].error_code)
        return codes


class Fetch(NamedTuple):
    """A ShareFetch, with topics by their names."""

    group: str | None
    member: str
    epoch: int
    version: int
    max_records: int
    batch_size: int
    mode: int
    renews: bool
    listed: Sequence[tuple[str, int]]
    forgotten: Sequence[tuple[str, int]]
    acknowledged: Sequence[Batches]

    def take(self, side: Side) -> Answer:
        """Return what was answered, in no order of partitions."""
        request = ShareFetchRequest
        topics: list[Any] = []
        for name, index, batches in _merged(self.listed, self.acknowledged):
            part = request.FetchPartition(
                index,
                acknowledgement_batches=[
                    request.AcknowledgementBatch(first, last, list(types))
                    for first, last, types in batches
                ],
            )
            topics.append(request.FetchTopic(side.topic_ids[name], [part]))
        answered = side.client.ask(
            request(
                self.group,
                self.member,
                self.epoch,
                0 if self.renews else WAIT_MS,
                0 if self.renews else 1,
                0 if self.renews else MAX_BYTES,
                self.max_records,
                self.batch_size,
                share_acquire_mode=self.mode if self.version > 1 else 0,
                is_renew_ack=self.renews if self.version > 1 else False,
                topics=topics,
                forgotten_topics_data=[
                    request.ForgottenTopic(side.topic_ids[name], [index])
                    for name, index in self.forgotten
                ],
            ),
            ShareFetchResponse,
            self.version,
        )
        found = [
            (side.names[topic.topic_id], fields_of(one))
            for topic in answered.responses
            for one in topic.partitions
        ]
        return (
            answered.error_code,
            answered.error_message,
            answered.acquisition_lock_timeout_ms,
            sorted(found, key=_place),
        )


class Acknowledge(NamedTuple):
    """A ShareAcknowledge, with topics by their names."""

    group: str | None
    member: str
    epoch: int
    version: int
    renews: bool
    acknowledged: Sequence[Batches]

    def take(self, side: Side) -> Answer:
        """Return what was answered, in no order of partitions."""
        request = ShareAcknowledgeRequest
        topics = [
            request.AcknowledgeTopic(
                side.topic_ids[one.topic],
                [
                    request.AcknowledgePartition(
                        one.partition,
                        [
                            request.AcknowledgementBatch(first, last, list(types))
                            for first, last, types in one.batches
                        ],
                    )
                ],
            )
            for one in self.acknowledged
        ]
        answered = side.client.ask(
            request(
                self.group,
                self.member,
                self.epoch,
                is_renew_ack=self.renews if self.version > 1 else False,
                topics=topics,
            ),
            ShareAcknowledgeResponse,
            self.version,
        )
        found = [
            (side.names[topic.topic_id], fields_of(one))
            for topic in answered.responses
            for one in topic.partitions
        ]
        return (
            answered.error_code,
            answered.error_message,
            answered.acquisition_lock_timeout_ms,
            sorted(found, key=_place),
        )


Step: TypeAlias = Append | Fetch | Acknowledge


def _place(found: tuple[str, dict[str, Any]]) -> tuple[str, int]:
    return found[0], found[1]["partition_index"]


def _merged(
    listed: Sequence[tuple[str, int]], acknowledged: Sequence[Batches]
) -> Iterator[tuple[str, int, Sequence[tuple[int, int, Sequence[int]]]]]:
    """Yield each partition once, with what is acknowledged of it."""
    batches = {(one.topic, one.partition): one.batches for one in acknowledged}
    for name, index in dict.fromkeys((*listed, *batches)):
        yield name, index, batches.get((name, index), ())


def fields_of(struct: Any) -> dict[str, Any]:
    """Return the fields of a message's part."""
    return {name: _plain(getattr(struct, name)) for name in struct.__slots__}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    if isinstance(value, memoryview):
        return value.tobytes()
    return (
        fields_of(value) if hasattr(value, "__slots__") and not isinstance(value, bytes) else value
    )


class Script:
    """Makes up the requests; `saw` tells it of their answers.

    A fetch acquires before or after its own acknowledgements make room for more records in flight.
    Where room is scarce, fetches that acquire must have none.
    """

    def __init__(self, random: Random, *, is_room_scarce: bool) -> None:
        self._random = random
        self._is_room_scarce = is_room_scarce
        self._members = {(group, name): Member() for group in GROUPS for name in MEMBERS}
        self._ends = dict.fromkeys(_places(), 0)
        self.released: list[Delivered] = []
        """The records of which a member had some until its session ended with the last step."""

    def first_steps(self) -> Iterator[Step]:
        """Yield what begins a session of each member with all partitions."""
        for group, name in self._members:
            yield Fetch(group, name, 0, 1, ALL_RECORDS, 100, 0, False, MEMBERS[name], (), ())

    def step(self) -> Step:
        """Return another request."""
        (make,) = self._random.choices((self._append, self._fetch, self._acknowledge), (15, 45, 40))
        return make()

    def saw(self, step: Step, answer: Answer) -> None:
        """Learn the epoch of a session, and what was acquired in it."""
        self.released = []
        if isinstance(step, Append):
            self._ends[step.topic, step.partition] += sum(step.counts)
            return
        member = self._members.get((step.group or "", step.member))
        code, _, _, found = answer
        if member is None or code != ErrorCode.NONE:
            return
        if step.epoch == -1:
            member.epoch = 0
            member.held.clear()
            self.released = member.take_released()
            return
        member.epoch = step.epoch + 1
        if isinstance(step, Fetch):
            member.change_places(step)
        for name, one in found:
            place = name, one["partition_index"]
            for batch in one.get("acquired_records", ()):
                first = batch["first_offset"]
                last = batch["last_offset"]
                member.held.setdefault(place, []).append((first, last))
                offsets = range(first, last + 1)
                count = batch["delivery_count"]
                member.delivered.append(Delivered(step.group or "", place, offsets, count))
        for done in step.acknowledged:
            held = member.held.get((done.topic, done.partition), [])
            for first, last, _types in done.batches:
                if (first, last) in held:
                    held.remove((first, last))

    def _append(self) -> Append:
        topic, partition = self._random.choice(_places())
        counts = [self._random.randint(1, 6) for _ in range(self._random.randint(1, 4))]
        compression = self._random.choice((Compression.NONE, Compression.NONE, Compression.LZ4))
        return Append(topic, partition, counts, compression)

    def _fetch(self) -> Fetch:
        random = self._random
        group, name = self._who()
        epoch = self._epoch(group, name)
        version = random.choice(VERSIONS)
        renews = version > 1 and random.random() < 0.08
        # A record that is released meanwhile may be acquired by the same request, or not.
        kinds = (ACCEPT, RENEW) if renews else (ACCEPT,)
        share = 0 if self._is_room_scarce and not renews else 0.25
        acknowledged = self._batches(group, name, kinds, share)
        return Fetch(
            group if random.random() < 0.98 else random.choice((None, "")),
            name if random.random() < 0.98 else random.choice(("", "x" * 37)),
            epoch,
            version,
            0 if renews and random.random() < 0.9 else self._max_records(name),
            random.choice((1, 2, 5, 100)),
            random.choice((0, 1)),
            renews,
            MEMBERS[name] if epoch == 0 else self._some_places(name, 0.4),
            self._some_places(name, 0.05),
            acknowledged,
        )

    def _acknowledge(self) -> Acknowledge:
        random = self._random
        group, name = self._who()
        version = random.choice(VERSIONS)
        renews = random.random() < 0.3
        kinds = (NO_ACK, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, RENEW)
        return Acknowledge(
            group if random.random() < 0.98 else random.choice((None, "")),
            name if random.random() < 0.98 else random.choice(("", "x" * 37)),
            self._epoch(group, name),
            version,
            renews,
            self._batches(group, name, kinds, 0.9),
        )

    def _who(self) -> tuple[str, str]:
        return self._random.choice(GROUPS), self._random.choice(tuple(MEMBERS))

    def _epoch(self, group: str, name: str) -> int:
        epoch = self._members[group, name].epoch
        return self._random.choices((epoch, -1, 0, epoch + 1, epoch - 1), (90, 2, 3, 3, 2))[0]

    def _max_records(self, name: str) -> int:
        is_one = len(MEMBERS[name]) == 1
        return self._random.choice((0, 1, 2, 3, 5, 20) if is_one else (0, ALL_RECORDS, ALL_RECORDS))

    def _some_places(self, name: str, share: float) -> list[tuple[str, int]]:
        places: list[tuple[str, int]] = [
            place for place in MEMBERS[name] if self._random.random() < share
        ]
        if len(MEMBERS[name]) > 1:
            if self._random.random() < 0.02:
                places.append((UNKNOWN, 0))
            if self._random.random() < 0.02:
                places.append(("two", 7))
        return places

    def _batches(self, group: str, name: str, kinds: Sequence[int], share: float) -> list[Batches]:
        """Return acknowledgements of what a member has, and of what it has not."""
        random = self._random
        acknowledged: list[Batches] = []
        held = self._members[group, name].held
        for topic, partition in MEMBERS[name]:
            if random.random() > share:
                continue
            own = held.get((topic, partition), [])
            batches = [self._batch(first, last, kinds) for first, last in own[:3]]
            if random.random() < 0.1:
                batches.append(self._batch(*self._not_held(topic, partition), kinds))
            if random.random() < 0.95:
                batches.sort()
            if batches or random.random() < 0.05:
                acknowledged.append(Batches(topic, partition, batches))
        if len(MEMBERS[name]) > 1 and random.random() < 0.02:
            acknowledged.append(Batches(UNKNOWN, 0, [(0, 0, [ACCEPT])]))
        return acknowledged

    def _not_held(self, topic: str, partition: int) -> tuple[int, int]:
        """Return offsets that another member may have, or that are beyond the log.

        Upon others that no member has, Kafka breaks off with a NullPointerException.
        """
        anyones = [
            one
            for member in self._members.values()
            for one in member.held.get((topic, partition), ())
        ]
        end = self._ends[topic, partition]
        return self._random.choice((*anyones, (end, end), (end, end + 3), (end + 2, end + 1)))

    def _batch(self, first: int, last: int, kinds: Sequence[int]) -> tuple[int, int, Sequence[int]]:
        random = self._random
        if random.random() < 0.6 or last < first:
            types = [random.choice(kinds)]
        else:
            types = [random.choice(kinds) for _ in range(first, last + 1)]
        if random.random() < 0.02:
            types = random.choice(([], [5], [-1], [ACCEPT, ACCEPT]))
        if random.random() < 0.1 and last > first:
            last -= 1
            types = types[:1]
        return first, last, types


def _places() -> list[tuple[str, int]]:
    return [(name, index) for name, count in TOPICS.items() for index in range(count)]
