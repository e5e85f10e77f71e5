"""One partition's directory: one pass over its log, with which all other files are compared.

Small files are read before the log is: a node writes the log first, so beside a running node the
log is then never older than what is compared with it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvorum.inspection.layouts.text_files import PARTITION_METADATA as PARTITION_METADATA_LAYOUT
from kvorum.inspection.layouts.text_files import flushed_offset
from kvorum.inspection.log_check.epoch_check import EpochCheck, check_quorum_state
from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.gap_notes import GapNotes
from kvorum.inspection.log_check.index_check import (
    SegmentBatches,
    check_offset_index,
    check_time_index,
)
from kvorum.inspection.log_check.listing import (
    PartitionFiles,
    add_damage,
    change_since,
    identity_of,
    list_partition,
    plan_segments,
    read_text,
    read_unit,
    read_whole,
)
from kvorum.inspection.log_check.metadata_check import MetadataCheck, QuorumFacts, load_snapshot
from kvorum.inspection.log_check.producer_check import ProducerCheck
from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.ranges import FileRange
from kvorum.metadata.image import MetadataImage
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE, decode_flushed_offset
from kvorum.storage.names import (
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_name,
)
from kvorum.storage.small_files.partition_metadata import (
    METADATA_TOPIC_ID,
    PARTITION_METADATA,
    decode_partition_metadata,
)
from kvorum.storage.small_files.quorum_state import QUORUM_STATE_FILE
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import HEADER_BYTES
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import Entry
from kvorum.wire.records.lz4_frames import unreadable_by_kafka
from kvorum.wire.uuid_text import uuid_to_text

_INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """The facts about one log that was checked.

    `end_offset` is None where damage hides the end. `image` and `quorum` are of the metadata log.
    """

    directory: Path
    topic_id: bytes | None
    start_offset: int | None
    end_offset: int | None
    has_torn_tail: bool
    image: MetadataImage | None
    quorum: QuorumFacts


def check_partition(directory: Path, findings: Findings) -> LogFacts:
    """Check all files of a partition's directory."""
    return _PartitionCheck(list_partition(directory, findings), findings).run()


class _PartitionCheck:
    """The check of one directory."""

    def __init__(self, files: PartitionFiles, findings: Findings) -> None:
        self._files = files
        self._findings = findings
        self._quorum = QuorumFacts()
        self._epochs = EpochCheck(files.named.get(LEADER_EPOCH_CHECKPOINT), findings)
        self._producers = ProducerCheck(files.producer_snapshots, findings)
        self._last_epoch = -1
        self._end_offset: int | None = None
        self._has_damage = False
        self._has_torn_tail = False
        self._has_epochs = False

    def run(self) -> LogFacts:
        """Check everything."""
        files = self._files
        topic_id = self._topic_id()
        flushed = self._flushed_offset()
        snapshots = [load_snapshot(path, self._findings, self._quorum) for path in files.snapshots]
        loaded = [snapshot for snapshot in snapshots if snapshot is not None]
        indexes = self._indexes()
        identities = {path: identity_of(path) for path in files.segments.values()}
        units = plan_segments(files, self._findings)
        first = units[0].file.offset if units else None
        self._metadata: MetadataCheck | None = None
        if files.is_metadata:
            self._metadata = MetadataCheck(
                loaded, self._findings, self._quorum, first_offset=first or 0
            )
        for unit in units:
            found_before = self._findings.count
            try:
                self._check_segment(unit, indexes)
            finally:
                # After Ctrl-C as well, as what was found is reported.
                self._withdraw_if_replaced(unit, identities[Path(unit.file.path)], found_before)
        self._check_ends(first, flushed)
        if files.is_metadata:
            self._check_start(first)
            self._check_quorum_state(max((one.name.id.epoch for one in loaded), default=-1))
        image = None if self._metadata is None or self._has_damage else self._metadata.image
        return LogFacts(
            directory=files.directory,
            topic_id=topic_id,
            start_offset=first,
            end_offset=None if self._has_damage else self._end_offset,
            has_torn_tail=self._has_torn_tail,
            image=image,
            quorum=self._quorum,
        )

    def _topic_id(self) -> bytes | None:
        path = self._files.named.get(PARTITION_METADATA)
        if path is None:
            if LEADER_EPOCH_CHECKPOINT in self._files.named:
                self._findings.add(
                    Rule.PARTITION_METADATA,
                    self._files.directory / PARTITION_METADATA,
                    "the file is missing, as in logs of releases before 2.8",
                    severity=Severity.NOTE,
                )
            return None
        topic_id = read_text(
            path, decode_partition_metadata, PARTITION_METADATA_LAYOUT, self._findings
        )
        if topic_id is None:
            return None
        if self._files.is_metadata != (topic_id == METADATA_TOPIC_ID):
            problem = f"topic id {uuid_to_text(topic_id)} is not that of this directory's topic"
            self._findings.add(Rule.PARTITION_METADATA, path, problem, position=0)
        return topic_id

    def _flushed_offset(self) -> int | None:
        path = self._files.named.get(FLUSHED_OFFSET_FILE)
        if path is None:
            return None
        return read_text(path, decode_flushed_offset, flushed_offset, self._findings)

    def _indexes(self) -> dict[Path, bytes]:
        """Return the indexes of the last segment, which a node may be writing."""
        last = max(self._files.segments, default=None)
        found: dict[Path, bytes] = {}
        for (base, _), path in self._files.indexes.items():
            data = read_whole(path, self._findings) if base == last else None
            if data is not None:
                found[path] = data
        return found

    def _check_segment(self, unit: FileRange, read: dict[Path, bytes]) -> None:
        """Read one segment, and compare its indexes with it."""
        path, base = Path(unit.file.path), unit.file.offset or 0
        batches = SegmentBatches(path, base, is_last=unit.end_offset is None)
        gaps = GapNotes(path, self._findings)
        self._producers.begin_segment()
        try:
            for item in read_unit(unit, has_gaps=not self._files.is_metadata):
                if isinstance(item, Damage):
                    self._note_damage(item, batches)
                else:
                    self._note_gap(gaps, item)
                    self._take(path, item)
                    batches.add(item)
                    self._findings.reached(path, item.position)
        except OSError as error:
            self._findings.unreadable(path, error)
            self._note_damage(None, batches)
        gaps.at_end()
        for suffix in _INDEX_SUFFIXES:
            self._check_index(batches, suffix, read, size=unit.file.size)

    def _withdraw_if_replaced(
        self, unit: FileRange, identity: tuple[int, int] | None, found_before: int
    ) -> None:
        """Withdraw what was found in a segment that is not the file any more that was listed."""
        change = change_since(unit, identity)
        if change is None:
            return
        self._findings.withdraw_since(found_before)
        path = Path(unit.file.path)
        self._findings.add(Rule.UNREADABLE, path, change, severity=Severity.NOTE)
        self._go_on_without_all()

    def _note_damage(self, damage: Damage | None, batches: SegmentBatches) -> None:
        if damage is not None:
            add_damage(damage, self._findings)
        if damage is not None and damage.kind is DamageKind.TORN_TAIL:
            self._has_torn_tail = True
            return
        batches.note_damage(0 if damage is None else damage.position)
        self._go_on_without_all()

    def _go_on_without_all(self) -> None:
        """From here on not all batches of the log are known."""
        self._has_damage = True
        self._producers.note_damage()
        if self._metadata is not None:
            self._metadata.note_damage()

    def _take(self, path: Path, entry: Entry) -> None:
        self._epochs.take(path, entry)
        self._producers.take(path, entry)
        if isinstance(entry, RecordBatch):
            self._has_epochs |= entry.partition_leader_epoch >= 0
            self._last_epoch = max(self._last_epoch, entry.partition_leader_epoch)
        if self._metadata is not None and isinstance(entry, RecordBatch):
            self._metadata.take(path, entry)
        else:
            self._decode(path, entry)
        self._end_offset = entry.last_offset + 1

    def _note_gap(self, gaps: GapNotes, entry: Entry) -> None:
        if not isinstance(entry, RecordBatch) or self._end_offset is None or self._has_damage:
            return
        if entry.base_offset > self._end_offset:
            gaps.add(
                first_offset=self._end_offset,
                next_offset=entry.base_offset,
                position=entry.position,
            )

    def _decode(self, path: Path, entry: Entry) -> None:
        """Read all records of an entry, which a checksum covers but which must also be records."""
        first = entry.base_offset if isinstance(entry, RecordBatch) else entry.offset
        found = _problem_of_records(entry, first)
        if found is not None:
            rule, problem = found
            self._findings.add(rule, path, problem, position=entry.position, offset=first)

    def _check_index(
        self, batches: SegmentBatches, suffix: str, read: dict[Path, bytes], *, size: int
    ) -> None:
        path = self._files.indexes.get((batches.base_offset, suffix))
        data = b""
        if path is not None:
            found = read.get(path)
            whole = read_whole(path, self._findings) if found is None else found
            if whole is None:
                return
            data = whole
        else:
            path = batches.path.with_name(offset_name(batches.base_offset, suffix))
            if suffix != TRANSACTION_INDEX_SUFFIX:
                if size > 0:
                    self._findings.add(
                        Rule.MISSING_INDEX,
                        path,
                        "the file is missing",
                        offset=batches.base_offset,
                        severity=Severity.NOTE,
                    )
                return
        if suffix == OFFSET_INDEX_SUFFIX:
            check_offset_index(path, data, batches, self._findings)
        elif suffix == TIME_INDEX_SUFFIX:
            check_time_index(path, data, batches, self._findings)
        else:
            self._producers.check_index(path, data, is_last=batches.is_last)

    def _check_ends(self, first: int | None, flushed: int | None) -> None:
        """Compare what knows of the log's beginning and end with the log."""
        if not self._files.segments and self._files.is_listed:
            self._check_end_without_segments(flushed)
            return
        end = first if self._end_offset is None else max(self._end_offset, first or 0)
        if end is None or first is None:
            return
        last_base = max(self._files.segments)
        end = max(end, last_base)
        self._end_offset = end
        self._producers.at_end(end, is_end_known=not self._has_damage)
        if self._has_damage:
            return
        starts = None
        if self._metadata is not None:
            self._metadata.at_end(end)
            starts = {int(path.name[:20]) for path in self._files.snapshots}
        self._epochs.at_end(end_offset=end, first_offset=first, starts=starts)
        if self._has_epochs:
            self._epochs.note_missing(self._files.directory)
        self._check_flushed(flushed, end)

    def _check_end_without_segments(self, flushed: int | None) -> None:
        """Find what knows of records in a log that has no segment, not even an empty one."""
        end = max((int(path.name[:20]) for path in self._files.snapshots), default=0)
        self._end_offset = end
        self._producers.at_end(end, is_end_known=True)
        self._epochs.at_end(end_offset=end, first_offset=0, starts=None)
        self._check_flushed(flushed, end)

    def _check_flushed(self, flushed: int | None, end: int) -> None:
        if flushed is not None and end < flushed:
            path = self._files.directory / FLUSHED_OFFSET_FILE
            problem = f"everything below offset {flushed} was durable, and the log ends at {end}"
            self._findings.add(Rule.LOG_END, path, problem, offset=end)

    def _check_start(self, first: int | None) -> None:
        """Check that something has the records before a metadata log's first segment."""
        ends = [int(path.name[:20]) for path in self._files.snapshots]
        for path, end in zip(self._files.snapshots, ends, strict=True):
            if end < (first or 0):
                problem = f"it ends at offset {end}, before the log's beginning at {first}"
                self._findings.add(
                    Rule.UNFINISHED, path, problem, offset=end, severity=Severity.NOTE
                )
        if first and max(ends, default=-1) < first:
            self._findings.add(
                Rule.MISSING_SNAPSHOT,
                self._files.segments[first],
                f"the log begins at offset {first}, and no snapshot reaches it",
                position=0,
                offset=first,
            )

    def _check_quorum_state(self, snapshot_epoch: int) -> None:
        named = self._files.named
        path = named.get(QUORUM_STATE_FILE)
        if path is None and LEADER_EPOCH_CHECKPOINT in named and self._last_epoch > 0:
            problem = "the file is missing, and the log has records"
            path = self._files.directory / QUORUM_STATE_FILE
            self._findings.add(Rule.QUORUM_STATE, path, problem)
        elif path is not None:
            last_epoch = max(self._last_epoch, snapshot_epoch)
            check_quorum_state(path, self._findings, self._quorum, last_epoch=last_epoch)


def _problem_of_records(entry: Entry, first: int) -> tuple[Rule, str] | None:
    """Return what is wrong with the records of an entry that begins at offset `first`."""
    is_batch = isinstance(entry, RecordBatch)
    try:
        for record in entry.records(UNLIMITED_BYTES):
            if is_batch and not first <= record.offset <= entry.last_offset:
                return Rule.RECORDS, f"a record of offset {record.offset} is outside of its batch"
    except WireError as error:
        return Rule.RECORDS, str(error)
    if isinstance(entry, RecordBatch) and entry.compression is Compression.LZ4:
        reason = unreadable_by_kafka(entry.data[HEADER_BYTES:])
        if reason is not None:
            return Rule.COMPRESSION, f"lz4: {reason}"
    return None
