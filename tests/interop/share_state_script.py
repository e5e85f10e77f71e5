"""Requests for the state of share partitions, by chance: mostly right, and often nearly right."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, cast

from tests.interop.share_coordinator_script import random_batches
from tests.support.raw_client import RawClient

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.share_coordinator.share_state_rpc import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    ShareStateRpc,
)
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest

TOPICS: Final[Mapping[str, int]] = {"one": 2, "two": 1}
"""The topics, with their numbers of partitions; there is one more, which is unknown."""
UNKNOWN: Final = "unknown"
GROUPS: Final = ("group", "a:b", "Grüße", "")
FIRST_VERSION_WITH_COUNTS: Final = 1
NO_COUNT: Final = -1
OFFSET_MAX: Final = 100
Answer: TypeAlias = Any


@dataclass
class Side:
    """One of the two brokers; each has given the topics ids of its own."""

    client: RawClient
    topic_ids: Mapping[str, bytes]
    names: Mapping[bytes, str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = {topic_id: name for name, topic_id in self.topic_ids.items()}


class Step(NamedTuple):
    """A request for parts of topics, by their names."""

    rpc: ShareStateRpc[Any, Any, Any]
    version: int
    group_id: str
    topics: Sequence[tuple[str, Sequence[Any]]]

    def take(self, side: Side) -> Answer:
        """Return the results of the response, by topic and partition, in no order."""
        topics = [self.rpc.new_topic(side.topic_ids[name], [*parts]) for name, parts in self.topics]
        request = self.rpc.new_request(self.group_id, topics)
        answered: Any = side.client.ask(request, self.rpc.response_type, self.version)
        results = [
            (side.names[topic.topic_id], fields_of(one))
            for topic in answered.results
            for one in topic.partitions
        ]
        return sorted(results, key=str)

    def __str__(self) -> str:
        shown = [(name, [fields_of(one) for one in parts]) for name, parts in self.topics]
        return f"{self.rpc.verb} {self.rpc.noun} v{self.version} {self.group_id!r} {shown}"


def fields_of(struct: Any) -> dict[str, Any]:
    """Return the fields of a message's part."""
    return {name: _plain(getattr(struct, name)) for name in struct.__slots__}


def _plain(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [fields_of(one) for one in cast("Sequence[Any]", value)]


def done_up_to(client: RawClient, share: SharePartitionKey) -> int:
    """Return the offset before which everything is done with, where nothing after it is.

    What is done with moves the start with the next write only.
    """
    part = ReadShareGroupStateSummaryRequest.PartitionData(share.partition)
    topic = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(share.topic_id, [part])
    request = ReadShareGroupStateSummaryRequest(share.group_id, [topic])
    (answered,) = client.ask(request, ReadShareGroupStateSummaryResponse, 1).results
    (state,) = answered.partitions
    end: int = state.start_offset + state.delivery_complete_count
    return end


class Script:
    """Makes up the requests."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def steps(self, count: int) -> Iterator[Step]:
        """Yield so many requests."""
        for _ in range(count):
            (make,) = self._random.choices(
                (self._initialize, self._write, self._read, self._read_summary, self._delete),
                (12, 50, 20, 10, 8),
            )
            yield make()

    def _initialize(self) -> Step:
        return self._step(
            INITIALIZE,
            0,
            lambda index: InitializeShareGroupStateRequest.PartitionData(
                index, self._epoch(), self._start_offset()
            ),
        )

    def _write(self) -> Step:
        version = self._random.choice((0, 1))
        has_counts = version >= FIRST_VERSION_WITH_COUNTS
        counts = (NO_COUNT, 0, 3) if has_counts else (NO_COUNT,)
        return self._step(
            WRITE,
            version,
            lambda index: WriteShareGroupStateRequest.PartitionData(
                index,
                state_epoch=self._epoch(),
                leader_epoch=self._epoch(),
                start_offset=self._start_offset(),
                delivery_complete_count=self._random.choice(counts),
                state_batches=[
                    WriteShareGroupStateRequest.StateBatch(*one)
                    for one in random_batches(self._random, OFFSET_MAX // 2, 3)
                    # Other batches make Java fail in words of its own.
                    if one.first_offset <= one.last_offset < OFFSET_MAX
                ],
            ),
        )

    def _read(self) -> Step:
        return self._step(
            READ, 0, lambda index: ReadShareGroupStateRequest.PartitionData(index, self._epoch())
        )

    def _read_summary(self) -> Step:
        return self._step(
            READ_SUMMARY,
            self._random.choice((0, 1)),
            lambda index: ReadShareGroupStateSummaryRequest.PartitionData(index, self._epoch()),
        )

    def _delete(self) -> Step:
        return self._step(DELETE, 0, DeleteShareGroupStateRequest.PartitionData)

    def _step(
        self, rpc: ShareStateRpc[Any, Any, Any], version: int, part: Callable[[int], Any]
    ) -> Step:
        """Return a step with some partitions: some twice or unknown, seldom none of a topic."""
        random = self._random
        names = random.choices((*TOPICS, UNKNOWN), (8, 6, 1), k=random.choice((1, 1, 1, 2)))
        topics: list[tuple[str, list[Any]]] = []
        for name in names if random.random() < 0.98 else ():
            indexes = range(TOPICS.get(name, 1))
            (count,) = random.choices((0, 1, 2, 3), (1, 20, 8, 4))
            chosen = random.choices((*indexes, 2, -1), (*(20 for _ in indexes), 1, 1), k=count)
            topics.append((name, [part(index) for index in chosen]))
        (group_id,) = random.choices(GROUPS, (20, 5, 5, 1))
        return Step(rpc, version, group_id, topics)

    def _epoch(self) -> int:
        return self._random.choices((0, 1, 2, 3, -1), (8, 4, 3, 1, 1))[0]

    def _start_offset(self) -> int:
        start_offset: int = self._random.choice((-1, -1, *range(0, 30, 3)))
        return start_offset
