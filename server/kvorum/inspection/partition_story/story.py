"""All changes of one partition, in their order, up to any offset; and as sentences."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.history import HistoryRow, LogRecord
from kvorum.history.errors import HistoryError
from kvorum.history.intervals import IntervalEnd
from kvorum.history.tables import LeaderChangeRow, PartitionTimelineRow
from kvorum.inspection.history_source import HistorySource
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.partition_story.change import (
    PartitionChange,
    Reason,
    ReasonKind,
    SurroundingsOfChanges,
    reasons_for,
)
from kvorum.inspection.utc_text import utc_text
from kvorum.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED
from kvorum.metadata.partition import NO_LEADER, RECOVERED
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

_SENTENCES: Final[Mapping[ReasonKind, str]] = MappingProxyType(
    {
        ReasonKind.PARTITION_CREATED: "the partition was created",
        ReasonKind.OLDER_THAN_LOG: "so it is in the snapshot that the log begins with",
        ReasonKind.BROKER_FENCED: "broker {brokers} was fenced",
        ReasonKind.CONTROLLED_SHUTDOWN: "broker {brokers} was in controlled shutdown",
        ReasonKind.BROKER_UNREGISTERED: "broker {brokers} was unregistered",
        ReasonKind.BROKER_RESTARTED: "broker {brokers} registered anew, as it does at its start",
        ReasonKind.DIRECTORY_FAILED: "the log directory on broker {brokers} failed",
        ReasonKind.BROKER_UNFENCED: "broker {brokers} was unfenced",
        ReasonKind.PREFERRED_ELECTION: "the preferred replica, {brokers}, was elected",
        ReasonKind.UNCLEAN_ELECTION: (
            "an unclean election made a replica the leader that was not in sync: what only the "
            "others had is lost"
        ),
        ReasonKind.REASSIGNMENT_BEGUN: "a reassignment began",
        ReasonKind.REASSIGNMENT_COMPLETED: "a reassignment was completed",
        ReasonKind.REASSIGNMENT_CANCELLED: "a reassignment was cancelled",
        ReasonKind.REASSIGNMENT_CHANGED: "a reassignment was replaced by another one",
        ReasonKind.ISR_SHRUNK: "the leader took {brokers} out of the ISR, as not in sync",
        ReasonKind.ISR_EXPANDED: "the leader took {brokers} into the ISR, as in sync again",
        ReasonKind.LEADER_RECOVERED: "the leader recovered from its unclean election",
        ReasonKind.DIRECTORY_ASSIGNED: "the replica on {brokers} has another log directory",
        ReasonKind.ELR_CHANGED: "the eligible leader replicas changed",
        ReasonKind.UNKNOWN: "the log does not say why",
    }
)


_RESERVED_DIRECTORIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        uuid_to_text(MIGRATING): "migrating",
        uuid_to_text(UNASSIGNED): "unassigned",
        uuid_to_text(LOST): "lost",
    }
)


class LogPlace(NamedTuple):
    """The offset and the time of a record; -1 for both before the first one."""

    offset: int
    timestamp_ms: int


class NoSuchPartitionError(Exception):
    """The log has no such partition as of the offset; one line of text."""


@dataclass(frozen=True, slots=True)
class PartitionStory:
    """The changes of a partition, the first one its creation or the state in a snapshot.

    `end` is the last record that was read. `stopped_by` is the damage that follows it, None where
    everything that was asked for was read.
    """

    topic_name: str
    topic_id: str
    partition_id: int
    changes: tuple[PartitionChange, ...]
    end: LogPlace
    stopped_by: str | None = None

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
    Where the log is damaged the story ends before the damage. Raises OSError,
    `NoSuchPartitionError`, and `MetadataSourceError` for damage before the partition's creation.
    """
    collected = _Collected(topic, partition)
    history = source.history
    end = LogPlace(history.next_offset - 1, history.last_timestamp_ms)
    collected.know_topic(history.open_rows())
    stopped_by: str | None = None
    try:
        for record in source.records:
            if record.offset >= end_offset:
                break
            if record.offset < history.next_offset:
                continue
            collected.follow(record)
            collected.take(history.add(record))
            end = LogPlace(record.offset, record.timestamp_ms)
    except (HistoryError, MetadataSourceError) as error:
        stopped_by = str(error)
    collected.take(history.open_rows())
    try:
        topic_id = collected.topic_id()
    except NoSuchPartitionError as error:
        if stopped_by is None:
            raise
        raise MetadataSourceError(stopped_by) from error
    changes = tuple(collected.changes())
    return PartitionStory(topic, topic_id, partition, changes, end, stopped_by)


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


def story_lines(story: PartitionStory) -> Iterator[str]:
    """Yield the present state with its reasons, and then one line for each change."""
    yield (
        f"{story.topic_name}-{story.partition_id} as of offset {story.end.offset}, "
        f"{utc_text(story.end.timestamp_ms)}"
    )
    present = story.present
    parts = (
        ("leader", _leader(present), story.leader_change()),
        ("isr", _listed(present.isr), story.isr_change()),
        ("replicas", _listed(present.replicas), story.replicas_change()),
    )
    for name, value, change in parts:
        yield f"  {name} {value} since offset {change.offset}: {reasons_text(change)}"
    yield "How it came about:"
    for change in story.changes:
        yield (
            f"  offset {change.offset}, {utc_text(change.timestamp_ms)}: "
            f"{reasons_text(change)}: {_differences(change)}"
        )


def reasons_text(change: PartitionChange) -> str:
    """Return the reasons for a change, one after the other."""
    return "; ".join(
        _SENTENCES[reason.kind].format(brokers=_listed(reason.brokers)) for reason in change.reasons
    )


def _differences(change: PartitionChange) -> str:
    """Return what is different after a change, or all of a first state."""
    before, after = change.before, change.after
    now = dict(_facts(after))
    if before is None:
        return ", ".join(f"{name} {value}" for name, value in now.items() if value != "none")
    then = dict(_facts(before))
    return ", ".join(
        f"{name} {then[name]} -> {value}" for name, value in now.items() if value != then[name]
    )


def _facts(state: PartitionTimelineRow) -> Iterator[tuple[str, str]]:
    yield "leader", _leader(state)
    yield "leader epoch", str(state.leader_epoch)
    yield "isr", _listed(state.isr)
    yield "replicas", _listed(state.replicas)
    yield "adding", _listed(state.adding_replicas)
    yield "removing", _listed(state.removing_replicas)
    yield "elr", _listed(state.eligible_leader_replicas)
    yield "last known elr", _listed(state.last_known_elr)
    yield "recovery", "none" if state.leader_recovery_state == RECOVERED else "under way"
    directories = (_RESERVED_DIRECTORIES.get(each, each) for each in state.directories)
    yield "directories", " ".join(directories) or "none"


def _leader(state: PartitionTimelineRow) -> str:
    return "none" if state.leader == NO_LEADER else str(state.leader)


def _listed(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "none"
