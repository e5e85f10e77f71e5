"""The records of one cluster's log in order, read from its replicas.

The reference is the replica that reached furthest. Where it is damaged, or begins too late, another
replica that has the offsets is read, up to where the reference has them again. A replica is only
read on from where its batch is the one that was read last.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, Final, NamedTuple, TypeAlias

from kvorum.history.intervals import LogRecord
from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.ranges import FileRange, plan_ranges
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record
from kvorum.spark.columnar.batch_block import block_of
from kvorum.spark.columnar.range_reader import read_range
from kvorum.spark.columnar.record_places import RecordRun, read_run
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.metadata_source.decoded_records import decoded_one_by_one
from kvorum.spark.pipeline.cluster_state import Tail, TailPlace
from kvorum.spark.pipeline.replicas import ENDLESS, Hole, ReadableReplica, Replica
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch

RANGE_BYTES: Final = 16 * 1024 * 1024
"""About how much of a segment is read again in order to go on within it."""
RUN_BYTES_MAX: Final = 256 * 1024
"""The bytes of batches that are decoded at once: enough to make the price of a run small."""

Records: TypeAlias = Generator[LogRecord, None, Damage | None]
"""Yields records, and returns the damage that ends them."""


class Piece(NamedTuple):
    """Records of a range of a file, from `first_offset` up to `end_offset`, itself not included."""

    unit: FileRange
    first_offset: int
    end_offset: int


@dataclass(slots=True)
class LogReading:
    """One pass over a cluster's log, from `next_offset` up to `limit`, itself not included.

    `replicas` are in the order of preference. `tail` is the batch before `next_offset`, where that
    is known. `is_tail_gone` means that the reference has another batch there, so that the reading
    ended: what was folded before is not what its log has.

    Damage is raised where `is_failfast`, else it is in `damages`. `highest_offset` is the end of
    the batches that were met, those before `next_offset` included; `path` is the file that is read,
    and `tail_place` the place of the tail's batch.
    `offered_count` counts offsets by the headers
    of batches, `withheld_count` those of them that came after a damage in their batch.
    """

    replicas: Sequence[ReadableReplica]
    options: Mapping[str, Any]
    next_offset: int
    tail: Tail | None
    limit: int = ENDLESS
    is_failfast: bool = True
    pieces: list[Piece] = field(default_factory=list[Piece])
    damages: list[Damage] = field(default_factory=list[Damage])
    offered_count: int = 0
    withheld_count: int = 0
    highest_offset: int = 0
    path: str = ""
    tail_place: TailPlace | None = None
    is_tail_torn: bool = False
    is_tail_gone: bool = False

    @property
    def handed_count(self) -> int:
        """The number of records that were handed out."""
        return self.offered_count - self.withheld_count

    def records(self) -> Iterator[LogRecord]:
        """Yield the records from the next offset on, as far as any replica has them."""
        while self.next_offset < self.limit:
            before = self.next_offset
            index = next((i for i, each in enumerate(self.replicas) if each.has(before)), None)
            if index is None:
                return
            self.is_tail_gone = False
            yield from self._of_replica(index)
            if self.is_tail_gone and index == 0:
                return
            if self.next_offset == before and self.replicas[index].has(before):
                # Nothing came from this replica, so the next one has to have it.
                self.replicas[index].holes.append(Hole(before, ENDLESS))

    def _of_replica(self, index: int) -> Iterator[LogRecord]:
        """Yield the records of one replica, up to a damage or to where a preferred one has them."""
        ends = [each.next_after(self.next_offset) for each in self.replicas[:index]]
        until = min([*ends, self.limit])
        for unit in self._units(self.replicas[index].replica):
            first, self.path = self.next_offset, unit.file.path
            damage = yield from self._of_range(unit, until)
            if self.next_offset > first:
                self.pieces.append(Piece(unit, first, self.next_offset))
            if damage is not None:
                last = damage.last_offset
                end = ENDLESS if last is None else last + 1
                self.replicas[index].holes.append(Hole(damage.first_offset, end))
                return
            if self.is_tail_gone or self.next_offset >= until:
                return

    def _units(self, replica: Replica) -> list[FileRange]:
        """Return the ranges from the one that holds the last known batch on."""
        return [
            unit._replace(missing_from=None)
            for unit in plan_ranges(
                replica.found, range_bytes=RANGE_BYTES, file_system_options=self.options
            )
            if unit.file in replica.segments
            and (unit.end_offset is None or unit.end_offset >= self.next_offset)
        ]

    def _of_range(self, unit: FileRange, until: int) -> Records:
        """Yield the records of one range; return a damage that ends the reading, or None."""
        for run, met in self._runs(unit, until):
            damage = yield from self._of_run(unit, run, until)
            if damage is not None:
                return damage
            if met is not None and self._is_in_the_way(met):
                return met
        return None

    def _runs(
        self, unit: FileRange, until: int
    ) -> Iterator[tuple[list[RecordBatch], Damage | None]]:
        """Yield batches that come next, many at once, and the damage after them, if any."""
        run: list[RecordBatch] = []
        size = 0
        for item in read_range(unit, file_system_options=self.options):
            first = item.first_offset if isinstance(item, Damage) else item.base_offset
            if first >= until or self.is_tail_gone:
                break
            if isinstance(item, Damage):
                yield run, item
                run, size = [], 0
            elif self._is_wanted(item):
                run.append(item)
                size += item.size
                if size > RUN_BYTES_MAX:
                    yield run, None
                    run, size = [], 0
        yield run, None

    def _is_wanted(self, batch: RecordBatch) -> bool:
        """Return whether a batch has records that come next, and compare it with the tail."""
        self.highest_offset = max(self.highest_offset, batch.next_offset)
        if batch.base_offset >= self.next_offset:
            return True
        if batch.next_offset < self.next_offset:
            return False
        if self.tail is not None:
            found = Tail(self.next_offset, batch.partition_leader_epoch, batch.crc)
            self.is_tail_gone = found != self.tail
            self.tail_place = TailPlace(self.path, batch.position)
        return batch.next_offset > self.next_offset and not self.is_tail_gone

    def _is_in_the_way(self, damage: Damage) -> bool:
        """Note a damage; return whether offsets that come next are missing because of it."""
        last = damage.last_offset
        is_read = last is not None and last < self.next_offset
        if damage.kind is DamageKind.TORN_TAIL:
            self.is_tail_torn = True
            return False
        if is_read and damage.first_offset < self.next_offset:
            return False
        self._note(damage)
        return not is_read

    def _note(self, damage: Damage) -> None:
        if self.is_failfast:
            raise DamagedFileError(file=damage.path, offset=damage.first_offset, reason=damage.text)
        self.damages.append(damage)

    def _of_run(self, unit: FileRange, run: list[RecordBatch], until: int) -> Records:
        """Yield the records of batches; return a damage within one of them, or None."""
        if not run:
            return None
        begin, end = self.next_offset, min(run[-1].next_offset, until)
        self.offered_count += end - begin
        for item in decoded_records(unit.file.path, run):
            if isinstance(item, Damage):
                self._note(item)
                self.withheld_count += end - item.first_offset
                self._advance(unit, run, item.first_offset)
                return item
            if begin <= item.offset < until:
                yield item
        self._advance(unit, run, end)
        return None

    def _advance(self, unit: FileRange, run: list[RecordBatch], end: int) -> None:
        """Move to `end`, which is within one of these batches or after the last one."""
        self.next_offset = end
        for batch in run:
            if batch.base_offset < end <= batch.next_offset:
                self.tail = Tail(end, batch.partition_leader_epoch, batch.crc)
                self.tail_place = TailPlace(unit.file.path, batch.position)


def decoded_records(path: str, batches: Sequence[RecordBatch]) -> Iterator[LogRecord | Damage]:
    """Yield the records of batches that follow each other; a damage is the last value."""
    for is_control, group in groupby(batches, key=lambda batch: batch.is_control):
        together = list(group)
        records = None if is_control else _at_once(together)
        if records is not None:
            yield from records
            continue
        for batch in together:
            for item in _one_by_one(path, batch):
                yield item
                if isinstance(item, Damage):
                    return


def _at_once(batches: Sequence[RecordBatch]) -> list[LogRecord] | None:
    """Return the records of batches without control records; None where one is unusual."""
    try:
        run = read_run(block_of(batches))
        spans = (range(each.base_offset, each.next_offset) for each in batches)
        if run is None or run.offsets.tolist() != list(chain.from_iterable(spans)):
            return None
        return _of_run(run)
    except (WireError, MetadataError):
        return None


def _of_run(run: RecordRun) -> list[LogRecord]:
    data = run.data.tobytes()
    records: list[LogRecord] = []
    for offset, epoch, time, start, end in zip(
        run.offsets.tolist(),
        run.epochs.tolist(),
        run.timestamps.tolist(),
        run.starts.tolist(),
        run.ends.tolist(),
        strict=True,
    ):
        message, version = decode_record(data[start - SHORT_HEADER_BYTES : end])
        records.append(LogRecord(offset, epoch, time, message, version))
    return records


def _one_by_one(path: str, batch: RecordBatch) -> Iterator[LogRecord | Damage]:
    for item in decoded_one_by_one(path, batch):
        if isinstance(item, Damage):
            yield item._replace(last_offset=batch.last_offset)
            return
        offset, time = item.record.offset, item.record.timestamp
        yield LogRecord(offset, batch.partition_leader_epoch, time, item.message, item.version)
