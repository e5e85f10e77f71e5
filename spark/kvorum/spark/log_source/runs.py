"""Runs of batches, and of messages of the formats 0 and 1, each of which becomes Arrow rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from kvorum.spark.columnar.batch_block import block_of
from kvorum.spark.columnar.legacy_places import place_messages
from kvorum.spark.columnar.record_places import RecordPlaces, find_records, place_records
from kvorum.spark.files.damage import Damage
from kvorum.spark.files.entry_reader import EntryOrDamage
from kvorum.spark.files.log_file import LogFile
from kvorum.spark.log_source.message_columns import MessageColumns
from kvorum.spark.log_source.record_columns import RecordColumns
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK
from kvorum.wire.records.legacy import Entry, LegacyMessage

RUN_RECORDS_MAX: Final = 16_384
"""A run of batches, which becomes one Arrow batch, ends once it has more records than this."""
RUN_BYTES_MAX: Final = 8 * 1024 * 1024
"""The same for bytes; packed ones count `PACKED_FACTOR` times."""
PACKED_FACTOR: Final = 8


class BatchRun(NamedTuple):
    """Batches in the order of the log."""

    entries: tuple[RecordBatch, ...]

    def places(self) -> RecordPlaces:
        """Return where the records are; `WireError` where one of the batches cannot be read."""
        found = find_records(block_of(self.entries))
        placed = None if found is None else place_records(found)
        if placed is None:
            raise self._misfit()
        return placed

    def columns(
        self, file: LogFile, places: RecordPlaces, outcomes: TransactionOutcomes
    ) -> RecordColumns:
        """Return the columns of the records at `places`."""
        return RecordColumns(file, self.entries, places, outcomes)

    def parts(self) -> Iterator[BatchRun]:
        """Yield each batch as a run of its own."""
        for entry in self.entries:
            yield BatchRun((entry,))

    def _misfit(self) -> WireError:
        """Return the error of batches whose records do not fit: the codec's, which says where."""
        try:
            for batch in self.entries:
                for _ in batch.records():
                    pass
        except WireError as error:
            return error
        position = self.entries[0].position
        return CorruptBatchError("record", "does not fit into its batch", offset=position)


class MessageRun(NamedTuple):
    """Messages of the formats 0 and 1 in the order of the log."""

    entries: tuple[LegacyMessage, ...]

    def places(self) -> RecordPlaces:
        """Return where the records are; `WireError` where one of the messages cannot be read."""
        return place_messages(self.entries)

    def columns(
        self, file: LogFile, places: RecordPlaces, outcomes: TransactionOutcomes
    ) -> RecordColumns:
        """Return the columns of the records at `places`."""
        return MessageColumns(file, self.entries, places, outcomes)

    def parts(self) -> Iterator[MessageRun]:
        """Yield each message as a run of its own."""
        for entry in self.entries:
            yield MessageRun((entry,))


Run: TypeAlias = BatchRun | MessageRun


def runs(items: Iterable[EntryOrDamage]) -> Iterator[Run | Damage]:
    """Yield runs of entries of one kind, and the damage between them."""
    entries: list[Entry] = []
    records = size = 0
    for item in items:
        is_full = records > RUN_RECORDS_MAX or size > RUN_BYTES_MAX
        if entries and (is_full or type(item) is not type(entries[0])):
            yield _run(entries)
            entries, records, size = [], 0, 0
        if isinstance(item, Damage):
            yield item
            continue
        entries.append(item)
        records += item.record_count if isinstance(item, RecordBatch) else 1
        size += item.size * (PACKED_FACTOR if item.attributes & COMPRESSION_MASK else 1)
    if entries:
        yield _run(entries)


def _run(entries: list[Entry]) -> Run:
    batches = tuple(entry for entry in entries if isinstance(entry, RecordBatch))
    messages = tuple(entry for entry in entries if isinstance(entry, LegacyMessage))
    return MessageRun(messages) if messages else BatchRun(batches)
