"""The columns of a run of batches, or of old messages, whose records have been found."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kvorum.log_files.find import LogFile
from kvorum.spark.columnar.arrow_values import Array, masked, taken, timestamps
from kvorum.spark.columnar.field_places import ABSENT, Places
from kvorum.spark.columnar.record_places import RecordPlaces
from kvorum.spark.log_source.columns import ARROW_TYPES, DAMAGE, FILE_VALUES
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.records import RecordBatch, decode_control_record
from kvorum.wire.records.batch import INT32_MAX, NO_PRODUCER, NO_SEQUENCE
from kvorum.wire.records.legacy import Entry
from kvorum.wire.records.record import Record, read_headers

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
UNKNOWN_CONTROL: Final = "UNKNOWN"

NEVER_OF_MESSAGES: Final = frozenset(
    {
        *("leader_epoch", "producer_id", "producer_epoch", "sequence"),
        *("transaction", "control_type"),
    }
)
"""The columns of what the formats 0 and 1 are older than: null for their records."""


class RecordColumns:
    """Columns by name, each made when it is asked for, of a run of entries of one kind."""

    def __init__(
        self,
        file: LogFile,
        run: Sequence[Entry],
        places: RecordPlaces,
        outcomes: TransactionOutcomes,
    ) -> None:
        self._file = file
        self._run = run
        self._batches = [entry for entry in run if isinstance(entry, RecordBatch)]
        self._places = places
        self._outcomes = outcomes

    def column(self, name: str) -> Array:
        """Return one value for each record."""
        kind = ARROW_TYPES[name]
        if name in FILE_VALUES:
            return taken([FILE_VALUES[name](self._file)], kind, np.zeros_like(self._places.offsets))
        if name in _OF_RECORDS:
            return _OF_RECORDS[name](self._places).cast(kind)
        if not self._batches and name in NEVER_OF_MESSAGES:
            return _nulls(self._places).cast(kind)
        if name in ENTRY_VALUES:
            return self._each([ENTRY_VALUES[name](entry) for entry in self._run], kind)
        return _OF_BATCHES[name](self).cast(kind)

    def _each(self, values: Sequence[Any], kind: Any) -> Array:
        """Return the value of each record's batch."""
        return taken(values, kind, self._places.batches)

    def sequences(self) -> Array:
        """Return the producer's numbers of the records, which wrap at 2³¹; null without one."""
        bases = np.array([batch.base_sequence for batch in self._batches], np.int64)
        firsts = np.array([batch.base_offset for batch in self._batches], np.int64)
        of = self._places.batches
        numbers = bases[of] + self._places.offsets - firsts[of]
        return masked(numbers & INT32_MAX, bases[of] == NO_SEQUENCE)

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


def _timestamp_type(entry: Entry) -> str | None:
    """Return Kafka's name of the kind of an entry's times; messages of format 0 have none."""
    if not entry.magic:
        return None
    return LOG_APPEND_TIME if entry.is_log_append_time else CREATE_TIME


ENTRY_VALUES: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "leader_epoch": lambda batch: batch.partition_leader_epoch,
        "timestamp_type": _timestamp_type,
        "compression": lambda entry: entry.compression.name.lower(),
        "producer_id": lambda batch: _known(batch.producer_id),
        "producer_epoch": lambda batch: _known(batch.producer_epoch),
    }
)
"""The columns that are the same for all records of a batch, or for all that a message wraps."""


def _known(number: int) -> int | None:
    return None if number == NO_PRODUCER else number


def _headers(places: RecordPlaces) -> Array:
    """Return the headers of each record, in their order; a key may come more than once.

    Raises `CorruptBatchError` where they do not fit into their record.
    """
    data, starts = places.content, places.header_starts
    has_some = places.data.take(starts, mode="clip") != 0
    found: list[list[dict[str, Any]]] = [[] for _ in starts]
    for index in np.flatnonzero(has_some):
        start, record_end = int(starts[index]), int(places.ends[index])
        headers, end = read_headers(data, start, record_end)
        if end != record_end:
            problem = f"headers of {end - start} bytes where its length allows {record_end - start}"
            raise CorruptBatchError("record", problem, offset=start)
        found[index] = [{"key": key, "value": value} for key, value in headers]
    return taken(found, ARROW_TYPES["headers"], np.arange(len(found)))


def _nulls(places: RecordPlaces) -> Array:
    return pa.nulls(len(places.offsets))


_OF_RECORDS: Final[Mapping[str, Callable[[RecordPlaces], Array]]] = MappingProxyType(
    {
        "offset": lambda places: pa.array(places.offsets),
        # Null for "no timestamp", and for one that Spark cannot hold.
        "timestamp": lambda places: timestamps(places.timestamps),
        "key": lambda places: _binary(places, places.keys),
        "value": lambda places: _binary(places, places.values),
        "headers": _headers,
        DAMAGE: _nulls,
    }
)
_OF_BATCHES: Final[Mapping[str, Callable[[RecordColumns], Array]]] = MappingProxyType(
    {
        "sequence": RecordColumns.sequences,
        "transaction": RecordColumns.transactions,
        "control_type": RecordColumns.control_types,
    }
)


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
