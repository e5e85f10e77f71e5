"""Conditions of a query that are used to skip files, ranges, batches and records.

Each method here may return True ("may match") for any reason, and False only with certainty.
"""

from typing import Final, NamedTuple

from kvorum.log_files.ranges import FileRange
from kvorum.spark.columnar.field_places import Flags
from kvorum.spark.columnar.record_places import RecordPlaces
from kvorum.spark.conditions import (
    ANY,
    ColumnKinds,
    Conditions,
    all_match,
    all_may_match,
    offsets_may_match,
)
from kvorum.spark.log_source.columns import FILE_VALUES
from kvorum.spark.log_source.record_columns import ENTRY_VALUES, NEVER_OF_MESSAGES
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import NO_SEQUENCE
from kvorum.wire.records.legacy import Entry, LegacyMessage

COLUMN_KINDS: Final = ColumnKinds(
    numbers=frozenset(
        {
            *("node_id", "partition", "offset", "leader_epoch"),
            *("producer_id", "producer_epoch", "sequence"),
        }
    ),
    texts=frozenset(
        {
            *("path", "cluster_id", "topic"),
            *("timestamp_type", "compression", "transaction", "control_type"),
        }
    ),
    times=frozenset({"timestamp"}),
)


class LogFilter(NamedTuple):
    """All conditions of a query that can be used, by column."""

    conditions: Conditions

    def admits_range(self, unit: FileRange) -> bool:
        """Return whether a range may hold a row that Spark keeps."""
        facts = {name: value(unit.file) for name, value in FILE_VALUES.items()}
        return all_match(self.conditions, facts) and offsets_may_match(self.conditions, unit)

    def admits_entry(self, entry: Entry) -> bool:
        """Return whether a batch or a message may hold a row that Spark keeps, by its header."""
        if isinstance(entry, LegacyMessage):
            return self._admits_message(entry)
        return self._admits_batch(entry)

    def _admits_batch(self, batch: RecordBatch) -> bool:
        """Return whether a batch may hold a row that Spark keeps, by its header."""
        wanted = self.conditions
        if not wanted:
            return True
        if "control_type" in wanted and not batch.is_control:
            return False
        if "transaction" in wanted and not batch.is_transactional:
            return False
        bounds = {
            "offset": (batch.base_offset, batch.last_offset),
            # The time of the first record need not be the lowest.
            "timestamp": (None, batch.max_timestamp),
        }
        if not all_may_match(wanted, bounds):
            return False
        return self._admits_sequence(batch) and self._admits_header(batch)

    def _admits_sequence(self, batch: RecordBatch) -> bool:
        sequences = self.conditions.get("sequence")
        if sequences is None:
            return True
        first, last = batch.base_sequence, batch.last_sequence
        if first == NO_SEQUENCE:
            return False
        # After the highest number the sequence begins again.
        return last < first or sequences.may_match(first, last)

    def _admits_header(self, entry: Entry) -> bool:
        try:
            return all(
                condition.matches(ENTRY_VALUES[name](entry))
                for name, condition in self.conditions.items()
                if name in ENTRY_VALUES
            )
        except WireError:
            # Reading the batch says what is wrong.
            return True

    def _admits_message(self, message: LegacyMessage) -> bool:
        """Return whether a message of format 0 or 1 may hold a row that Spark keeps."""
        if not NEVER_OF_MESSAGES.isdisjoint(self.conditions):
            return False
        if not message.magic and "timestamp" in self.conditions:
            return False
        # The first offset that it wraps is not in its header.
        if not all_may_match(self.conditions, {"offset": (None, message.last_offset)}):
            return False
        return self._admits_header(message)

    def matching(self, places: RecordPlaces) -> Flags:
        """Return which records may be rows that Spark keeps."""
        kept = self.conditions.get("offset", ANY).matching(places.offsets)
        kept &= self.conditions.get("timestamp", ANY).matching(places.timestamps)
        return kept


NO_FILTER: Final = LogFilter({})
