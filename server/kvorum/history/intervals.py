"""Records of the log, places at which they change the state, and the intervals between these."""

from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.wire.primitives import Message


class LogRecord(NamedTuple):
    """A metadata record, or the message of a control record, with its place in the log.

    `epoch` is the leader epoch of the record's batch. `timestamp_ms` is the time when the leader
    created the batch, in milliseconds since 1970. `version` is the version of the message.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    message: Message
    version: int


class Position(NamedTuple):
    """The place and the time at which the state changed.

    That is the place of a record; for the records of a metadata transaction, that of its end.
    `is_snapshot` holds for state that is older: a snapshot contains it, and `offset` is the last
    offset that the snapshot covers.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    is_snapshot: bool = False

    @property
    def columns(self) -> tuple[int, int, int]:
        """The offset, the time and the epoch, as rows begin with them."""
        return self.offset, self.timestamp_ms, self.epoch


class Begin(NamedTuple):
    """The begin of an interval. It is the snapshot's where `begins_earlier`, the true one before.

    JSON holds it as a list of these fields, rows as columns in this order.
    """

    offset: int
    timestamp_ms: int
    begins_earlier: bool


@unique
class IntervalEnd(StrEnum):
    """Reasons for which an interval ends; `LOG_END` is that of an interval that is still open."""

    CHANGED = "changed"
    TOPIC_DELETED = "topic_deleted"
    SUPERSEDED = "superseded"
    UNREGISTERED = "unregistered"
    LOG_END = "log_end"


class End(NamedTuple):
    """The end of an interval; an open one has no place, and was observed until `observed_ms`.

    Rows have the other fields as columns in this order.
    """

    offset: int | None
    timestamp_ms: int | None
    reason: IntervalEnd
    observed_ms: int


def begin_at(position: Position) -> Begin:
    """Return the begin of an interval whose state is in force from `position` on."""
    return Begin(position.offset, position.timestamp_ms, position.is_snapshot)


def end_at(position: Position, reason: IntervalEnd) -> End:
    """Return the end of an interval whose state is in force up to `position`."""
    return End(position.offset, position.timestamp_ms, reason, position.timestamp_ms)


def log_end(position: Position) -> End:
    """Return the end of an interval that is open after the last record, which is at `position`."""
    return End(None, None, IntervalEnd.LOG_END, position.timestamp_ms)
