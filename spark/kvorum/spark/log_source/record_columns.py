"""The columns of a run of batches, or of old messages, whose records have been found."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kvorum.spark.columnar.arrow_values import Array, masked, taken, timestamps
from kvorum.spark.columnar.field_places import ABSENT, Places
from kvorum.spark.columnar.record_places import RecordPlaces
from kvorum.spark.files.find import LogFile
from kvorum.spark.log_source.columns import ARROW_TYPES, DAMAGE, FILE_VALUES
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch, decode_control_record
from kvorum.wire.records.batch import INT32_MAX, NO_PRODUCER, NO_SEQUENCE
from kvorum.wire.records.legacy import Entry, LegacyMessage
from kvorum.wire.records.record import Record, read_headers

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
UNKNOWN_CONTROL: Final = "UNKNOWN"


class RecordColumns:
    """Columns by name, each made when it is asked for."""

    def __init__(
        self,
        file: LogFile,
        batches: Sequence[RecordBatch],
        places: RecordPlaces,
        outcomes: TransactionOutcomes,
    ) -> None:
        self._file = file
        self._batches = batches
        self._places = places
        self._outcomes = outcomes

    def column(self, name: str) -> Array:
        """Return one value for each record."""
        if name in FILE_VALUES:
            everywhere = np.zeros_like(self._places.offsets)
            return taken([FILE_VALUES[name](self._file)], ARROW_TYPES[name], everywhere)
        if name in BATCH_VALUES:
            values = [BATCH_VALUES[name](batch) for batch in self._batches]
            return self._each(values, ARROW_TYPES[name])
        return _OF_RECORDS[name](self).cast(ARROW_TYPES[name])

    def _each(self, values: Sequence[Any], kind: Any) -> Array:
        """Return the value of each record's batch."""
        return taken(values, kind, self._places.batches)

    def offsets(self) -> Array:
        """Return the offsets."""
        return pa.array(self._places.offsets)

    def timestamps(self) -> Array:
        """Return the times; null for "no timestamp", and for one that Spark cannot hold."""
        return timestamps(self._places.timestamps)

    def keys(self) -> Array:
        """Return the keys."""
        return _binary(self._places, self._places.keys)

    def values(self) -> Array:
        """Return the values; null for a tombstone."""
        return _binary(self._places, self._places.values)

    def headers(self) -> Array:
        """Return the headers of each record, in their order; a key may come more than once."""
        places = self._places
        data, starts = places.content, places.header_starts
        has_some = places.data.take(starts, mode="clip") != 0
        found: list[list[dict[str, Any]]] = [[] for _ in starts]
        for index in np.flatnonzero(has_some):
            headers, _ = read_headers(data, int(starts[index]), int(places.ends[index]))
            found[index] = [{"key": key, "value": value} for key, value in headers]
        return taken(found, ARROW_TYPES["headers"], np.arange(len(found)))

    def sequences(self) -> Array:
        """Return the producer's numbers of the records, which wrap at 2³¹; null without one."""
        bases = np.array([batch.base_sequence for batch in self._batches], np.int64)
        firsts = np.array([batch.base_offset for batch in self._batches], np.int64)
        of = self._places.batches
        numbers = bases[of] + self._places.offsets - firsts[of]
        numbers = np.where(numbers > INT32_MAX, numbers - INT32_MAX - 1, numbers)
        return masked(numbers, bases[of] == NO_SEQUENCE)

    def transactions(self) -> Array:
        """Return how the transactions ended; null for records of none."""
        states = [
            self._outcomes.state_of(batch) if batch.is_transactional else None
            for batch in self._batches
        ]
        return self._each([state and state.value for state in states], pa.string())

    def control_types(self) -> Array:
        """Return the types of control records; null for all other records."""
        places = self._places
        found: list[str | None] = [None] * len(places.offsets)
        is_control = np.array([batch.is_control for batch in self._batches])
        for index in np.flatnonzero(is_control[places.batches]):
            found[index] = _control_type(places, int(index))
        return pa.array(found, pa.string())

    def damage(self) -> Array:
        """Return null for each record."""
        return pa.nulls(len(self._places.offsets))


def timestamp_type(entry: Entry) -> str:
    """Return Kafka's name of the kind of an entry's times."""
    return LOG_APPEND_TIME if entry.is_log_append_time else CREATE_TIME


BATCH_VALUES: Final[Mapping[str, Callable[[RecordBatch], Any]]] = MappingProxyType(
    {
        "leader_epoch": lambda batch: batch.partition_leader_epoch,
        "timestamp_type": timestamp_type,
        "compression": lambda batch: batch.compression.name.lower(),
        "producer_id": lambda batch: _known(batch.producer_id),
        "producer_epoch": lambda batch: _known(batch.producer_epoch),
    }
)
"""The columns that are the same for all records of a batch."""
_OF_RECORDS: Final[Mapping[str, Callable[[RecordColumns], Array]]] = MappingProxyType(
    {
        "offset": RecordColumns.offsets,
        "timestamp": RecordColumns.timestamps,
        "key": RecordColumns.keys,
        "value": RecordColumns.values,
        "headers": RecordColumns.headers,
        "sequence": RecordColumns.sequences,
        "transaction": RecordColumns.transactions,
        "control_type": RecordColumns.control_types,
        DAMAGE: RecordColumns.damage,
    }
)


def _known(number: int) -> int | None:
    return None if number == NO_PRODUCER else number


def _binary(places: RecordPlaces, parts: Places) -> Array:
    return pa.array(
        [
            _part(places, start, count)
            for start, count in zip(parts.starts.tolist(), parts.counts.tolist(), strict=True)
        ],
        pa.binary(),
    )


def _part(places: RecordPlaces, start: int, count: int) -> bytes | None:
    return None if count == ABSENT else places.content[start : start + count]


def _control_type(places: RecordPlaces, index: int) -> str:
    key, value = (
        _part(places, int(of.starts[index]), int(of.counts[index]))
        for of in (places.keys, places.values)
    )
    record = Record(int(places.offsets[index]), int(places.timestamps[index]), key, value, ())
    try:
        return decode_control_record(record).type.name
    except WireError:
        return UNKNOWN_CONTROL


ALWAYS_NULL: Final = frozenset(
    {
        *("leader_epoch", "producer_id", "producer_epoch", "sequence"),
        *("transaction", "control_type"),
    }
)
"""The columns of what these formats are older than."""


def message_timestamp_type(message: LegacyMessage) -> str | None:
    """Return the kind of a message's times; None in format 0, which has none."""
    return timestamp_type(message) if message.magic else None


MESSAGE_VALUES: Final[Mapping[str, Callable[[LegacyMessage], str | None]]] = MappingProxyType(
    {
        "timestamp_type": message_timestamp_type,
        "compression": lambda message: message.compression.name.lower(),
    }
)
"""The columns that are the same for all records that a message wraps."""


class MessageColumns(RecordColumns):
    """Columns by name, each made when it is asked for."""

    def __init__(
        self,
        file: LogFile,
        messages: Sequence[LegacyMessage],
        places: RecordPlaces,
        outcomes: TransactionOutcomes,
    ) -> None:
        super().__init__(file, (), places, outcomes)
        self._messages = messages

    def column(self, name: str) -> Array:
        """Return one value for each record."""
        kind = ARROW_TYPES[name]
        if name in ALWAYS_NULL:
            arrow: Any = pa
            nulls: Array = arrow.nulls(len(self._places.offsets), kind)
            return nulls
        if name in MESSAGE_VALUES:
            return self._each([MESSAGE_VALUES[name](message) for message in self._messages], kind)
        return super().column(name)


def batches_of(run: Iterable[Entry]) -> list[RecordBatch]:
    """Return the batches among the entries of a run."""
    return [entry for entry in run if isinstance(entry, RecordBatch)]


def messages_of(run: Iterable[Entry]) -> list[LegacyMessage]:
    """Return the messages of the formats 0 and 1 among the entries of a run."""
    return [entry for entry in run if isinstance(entry, LegacyMessage)]


def columns_of(
    file: LogFile, run: Sequence[Entry], places: RecordPlaces, outcomes: TransactionOutcomes
) -> RecordColumns:
    """Return the columns of the records at `places` of a run of entries of one kind."""
    batches = batches_of(run)
    if batches:
        return RecordColumns(file, batches, places, outcomes)
    return MessageColumns(file, messages_of(run), places, outcomes)
