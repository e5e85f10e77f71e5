"""All changes of one partition, in their order, up to any offset."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from kvorum.inspection.metadata_log.files import MetadataSourceError
from kvorum.inspection.metadata_log.records import HistorySource
from kvorum.inspection.partition_story.change import (
    PartitionChange,
    Reason,
    ReasonKind,
    SurroundingsOfChanges,
)
from kvorum.inspection.partition_story.reasons import reasons_for
from kvorum.spark.errors import HistoryError
from kvorum.spark.history import HistoryRow, LogRecord
from kvorum.spark.history.intervals import IntervalEnd
from kvorum.spark.history.tables import LeaderChangeRow, PartitionTimelineRow
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.uuid_text import uuid_from_text


class LogPlace(NamedTuple):
    """The offset and the time of a record; -1 for both before the first one."""

    offset: int
    timestamp_ms: int


class NoSuchPartitionError(Exception):
    """The log has no such partition as of the offset; one line of text."""


@dataclass(frozen=True, slots=True)
class PartitionStory:
    """The changes of a partition, the first one its creation or the state in a snapshot.

    `end` is the last record that was read.
    """

    topic_name: str
    topic_id: str
    partition_id: int
    changes: tuple[PartitionChange, ...]
    end: LogPlace

    @property
    def present(self) -> PartitionTimelineRow:
        """The state after the last change."""
        return self.changes[-1].after

    def leader_change(self) -> PartitionChange:
        """Return the change that brought the present leader."""
        return self._latest(lambda one: one.leader)

    def isr_change(self) -> PartitionChange:
        """Return the change that brought the present in-sync replicas."""
        return self._latest(lambda one: frozenset(one.isr))

    def replicas_change(self) -> PartitionChange:
        """Return the change that brought the present replicas."""
        return self._latest(lambda one: one.replicas)

    def _latest(self, part: Callable[[PartitionTimelineRow], object]) -> PartitionChange:
        """Return the last change before which `part` of the state was another one."""
        return next(
            change
            for change in reversed(self.changes)
            if change.before is None or part(change.before) != part(change.after)
        )


def partition_story(
    source: HistorySource, topic: str, partition: int, *, end_offset: int
) -> PartitionStory:
    """Return the story of a partition up to the record before `end_offset`.

    A topic that was deleted and made again is another one: its story begins with its creation.
    Raises OSError, `MetadataSourceError` and `NoSuchPartitionError`.
    """
    collected = _Collected(topic, partition)
    history = source.history
    end = LogPlace(history.next_offset - 1, history.last_timestamp_ms)
    collected.know_topic(history.open_rows())
    try:
        for record in source.records:
            if record.offset >= end_offset:
                break
            if record.offset < history.next_offset:
                continue
            collected.follow(record)
            collected.take(history.add(record))
            end = LogPlace(record.offset, record.timestamp_ms)
    except HistoryError as error:
        raise MetadataSourceError(str(error)) from error
    collected.take(history.open_rows())
    return PartitionStory(topic, collected.topic_id(), partition, tuple(collected.changes()), end)


@dataclass(slots=True)
class _Collected:
    """Rows of one partition, of all topics that had its name, and what surrounds its changes."""

    topic: str
    partition: int
    _ids: set[bytes] = field(default_factory=set[bytes])
    _states: list[PartitionTimelineRow] = field(default_factory=list[PartitionTimelineRow])
    _causes: dict[int, str] = field(default_factory=dict[int, str])
    _epoch_starts: list[int] = field(default_factory=list[int])
    _epochs: list[int] = field(default_factory=list[int])
    _surroundings: SurroundingsOfChanges = field(default_factory=SurroundingsOfChanges)

    def follow(self, record: LogRecord) -> None:
        """Take in a record before its rows."""
        message = record.message
        if not self._epochs or self._epochs[-1] != record.epoch:
            self._epoch_starts.append(record.offset)
            self._epochs.append(record.epoch)
        if isinstance(message, TopicRecord) and message.name == self.topic:
            self._ids.add(message.topic_id)
        is_noted = (
            isinstance(message, PartitionChangeRecord)
            and message.partition_id == self.partition
            and message.topic_id in self._ids
        )
        self._surroundings.follow(message, record.offset, is_noted=is_noted)

    def know_topic(self, rows: Iterable[HistoryRow]) -> None:
        """Take the topic's id from the state that the log begins with."""
        for row in rows:
            if isinstance(row, PartitionTimelineRow) and row.topic_name == self.topic:
                self._ids.add(uuid_from_text(row.topic_id))

    def take(self, rows: Iterable[HistoryRow]) -> None:
        """Take in rows of history."""
        for row in rows:
            if not isinstance(row, PartitionTimelineRow | LeaderChangeRow):
                continue
            if row.partition_id != self.partition or row.topic_name != self.topic:
                continue
            if isinstance(row, PartitionTimelineRow):
                self._states.append(row)
            else:
                self._causes[row.offset] = row.cause

    def topic_id(self) -> str:
        """Return the id of the last topic of that name; NoSuchPartitionError without one."""
        if not self._states:
            what = f"partition {self.partition} of topic {self.topic}"
            raise NoSuchPartitionError(f"there is no {what}, and there was none before")
        last = self._states[-1]
        if last.end_reason == IntervalEnd.TOPIC_DELETED:
            raise NoSuchPartitionError(
                f"there is no topic {self.topic}: it was deleted at offset {last.to_offset}"
            )
        return last.topic_id

    def changes(self) -> Iterator[PartitionChange]:
        """Yield the changes of the last topic of that name."""
        topic_id = self._states[-1].topic_id
        states = [row for row in self._states if row.topic_id == topic_id]
        first = states[0]
        is_older = first.begins_earlier
        begin = ReasonKind.OLDER_THAN_LOG if is_older else ReasonKind.PARTITION_CREATED
        yield PartitionChange(None, first, self._epoch(first.from_offset), (Reason(begin),))
        for before, after in pairwise(states):
            offset = after.from_offset
            reasons = reasons_for(
                before, after, self._surroundings.of(offset), self._causes.get(offset)
            )
            yield PartitionChange(before, after, self._epoch(offset), reasons)

    def _epoch(self, offset: int) -> int:
        """Return the controller epoch at an offset; -1 where it is older than the log."""
        index = bisect_right(self._epoch_starts, offset)
        return self._epochs[index - 1] if index else -1
