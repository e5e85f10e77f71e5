"""Records of a share group that die, at brokers of any kind, and what comes to its queue."""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias, cast

from tests.interop.clients.confluent import read_to_end
from tests.interop.share_fetch_script import Acknowledge, Batches, Fetch, Side
from tests.support.raw_client import RawClient
from tests.support.topics import read_topics
from tests.support.waiting import wait_for

from kvorum.broker.share_partition.record_state import RecordState
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)

MEMBER: Final = "member"
RELEASE, REJECT = 2, 3
QUEUE: Final = "errors.deadletterqueue.topic.name"
COPIES: Final = "errors.deadletterqueue.copy.record.enable"
Headers: TypeAlias = list[tuple[str, bytes | None]]


class Range(NamedTuple):
    """Offsets of a partition that a member is done with, or gives back."""

    partition: int
    first: int
    last: int


class Letter(NamedTuple):
    """A record of a queue."""

    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Source(NamedTuple):
    """A topic, all of whose partitions one broker leads."""

    name: str
    topic_id: bytes
    partition_count: int


class DyingGroup:
    """A group with one member at the leader; `coordinator` keeps the state of its partitions."""

    def __init__(
        self, name: str, source: Source, leader: RawClient, coordinator: RawClient
    ) -> None:
        self._name = name
        self._source = source
        self._side = Side(leader, {source.name: source.topic_id})
        self._coordinator = coordinator
        self._epoch = 0

    def begin(self) -> None:
        """Begin at the start of the topic."""
        request = InitializeShareGroupStateRequest
        source = self._source
        partitions = [request.PartitionData(index, 1, 0) for index in range(source.partition_count)]
        state = request(self._name, [request.InitializeStateData(source.topic_id, partitions)])
        (topic,) = self._coordinator.ask(state, InitializeShareGroupStateResponse, 0).results
        assert not any(one.error_code for one in topic.partitions)

    def acquire(self, count: int) -> None:
        """Fetch until the member has got so many records."""
        acquired = 0

        def has_all() -> bool:
            nonlocal acquired
            acquired += self._fetch()
            return acquired >= count

        wait_for(has_all, f"{count} records are acquired", otherwise=lambda: acquired)

    def _fetch(self) -> int:
        """Acquire what there is; return how many records that are."""
        places = [(self._source.name, index) for index in range(self._source.partition_count)]
        listed = places if self._epoch == 0 else ()
        fetch = Fetch(self._name, MEMBER, self._epoch, 1, 500, 100, 0, False, listed, (), ())
        code, message, _, found = fetch.take(self._side)
        assert code == ErrorCode.NONE, message
        self._epoch += 1
        return sum(
            batch["last_offset"] - batch["first_offset"] + 1
            for _, one in found
            for batch in one["acquired_records"]
        )

    def acknowledge(self, ranges: Iterable[Range], kind: int) -> None:
        """Reject records, or give them back."""
        name = self._source.name
        batches = [Batches(name, where, [(first, last, [kind])]) for where, first, last in ranges]
        asked = Acknowledge(self._name, MEMBER, self._epoch, 1, False, batches)
        code, message, _, found = asked.take(self._side)
        assert code == ErrorCode.NONE, message
        assert not any(one["error_code"] for _, one in found), found
        self._epoch += 1

    def are_archived(self, ranges: Iterable[Range]) -> bool:
        """Return whether the state has records as archived."""
        request = ReadShareGroupStateRequest
        source = self._source
        partitions = [request.PartitionData(index, 0) for index in range(source.partition_count)]
        asked = request(self._name, [request.ReadStateData(source.topic_id, partitions)])
        (topic,) = self._coordinator.ask(asked, ReadShareGroupStateResponse, 0).results
        states = {part.partition: part for part in topic.partitions}
        return all(is_archived(states[where], first, last) for where, first, last in ranges)


def is_archived(
    state: ReadShareGroupStateResponse.PartitionResult, first_offset: int, last_offset: int
) -> bool:
    """Return whether records lie before the start offset of a state, or are archived there."""
    archived = {
        offset
        for batch in state.state_batches
        if batch.delivery_state == RecordState.ARCHIVED
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    return all(
        offset < state.start_offset or offset in archived
        for offset in range(first_offset, last_offset + 1)
    )


def letters(address: str, queue: str, group: str) -> list[Letter]:
    """Return the records of a group in a queue, by their partitions and headers."""
    count = read_topics(address)[queue].partition_count
    places = [(queue, index) for index in range(count)]
    found = [
        Letter(one.partition(), one.key(), one.value(), tuple(cast("Headers", one.headers())))
        for one in read_to_end(address, places)
    ]
    found = [one for one in found if ("__dlq.errors.group", group.encode()) in one.headers]
    return sorted(found, key=lambda letter: (letter.partition or 0, str(letter.headers)))
