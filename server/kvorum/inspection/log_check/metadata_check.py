"""The metadata log's records and snapshots: whether each can be read and folded, and they agree.

The log is folded from its beginning, or from the first snapshot that reaches its beginning. Where
a later snapshot ends, the state that was folded so far must be the snapshot's.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.listing import add_damage, plan_files, read_unit
from kvorum.log_files.damage import Damage
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.replay import ImageEditor, fold_record
from kvorum.storage.names import SnapshotName, parse_snapshot_name
from kvorum.wire.errors import WireError
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordBatch, decode_control_record


@dataclass(slots=True)
class QuorumFacts:
    """The quorum in control records: leaders by epoch, voters with their directories."""

    leaders: dict[int, int] = field(default_factory=dict[int, int])
    voters: dict[int, set[bytes]] = field(default_factory=dict[int, set[bytes]])

    def take(self, message: object, epoch: int) -> None:
        """Take in what one control record says."""
        if isinstance(message, LeaderChangeMessage):
            self.leaders[epoch] = message.leader_id
            for voter in message.voters:
                self.voters.setdefault(voter.voter_id, set())
        elif isinstance(message, VotersRecord):
            for known in message.voters:
                self.voters.setdefault(known.voter_id, set()).add(known.voter_directory_id)


class LoadedSnapshot(NamedTuple):
    """A sound snapshot: its name, its state, and the time of the last record that it covers."""

    name: SnapshotName
    path: Path
    image: MetadataImage
    last_contained_timestamp: int | None


class MetadataFold:
    """A state that records are folded into, one batch after the other.

    The first record that fails is a finding; nothing is folded any more then.
    """

    def __init__(self, findings: Findings, quorum: QuorumFacts, image: MetadataImage) -> None:
        self.is_trusted = True
        self._findings = findings
        self._quorum = quorum
        self._editor = ImageEditor(image)
        self.last_contained_timestamp: int | None = None

    def take(self, file: Path, batch: RecordBatch, *, from_offset: int = 0) -> None:
        """Decode all records of a batch, and fold those from an offset on."""
        if not self.is_trusted:
            return
        offset = batch.base_offset
        try:
            for record in batch.records():
                offset = record.offset
                if batch.is_control:
                    message: object = decode_control_record(record).message
                    self._quorum.take(message, batch.partition_leader_epoch)
                    if isinstance(message, SnapshotHeaderRecord):
                        self.last_contained_timestamp = message.last_contained_log_timestamp
                    continue
                decoded, _ = decode_record(record.value or b"")
                if offset >= from_offset:
                    fold_record(self._editor, decoded, offset)
        except (WireError, MetadataError) as error:
            self.is_trusted = False
            rule = Rule.RECORDS if isinstance(error, WireError) else Rule.METADATA_RECORD
            self._findings.add(rule, file, str(error), position=batch.position, offset=offset)

    def image(self) -> MetadataImage:
        """Return the state so far; more may be folded."""
        image = self._editor.finish()
        assert isinstance(image, MetadataImage)
        transaction = self._editor.transaction
        self._editor.rebase(image)
        self._editor.transaction = transaction
        return image


class MetadataCheck:
    """The fold of one metadata log, compared with its snapshots."""

    def __init__(
        self,
        snapshots: list[LoadedSnapshot],
        findings: Findings,
        quorum: QuorumFacts,
        *,
        first_offset: int,
    ) -> None:
        self.is_folded = True
        self._findings = findings
        self._waiting = sorted(snapshots, key=lambda one: one.name.id, reverse=True)
        self._from_offset = 0
        image = MetadataImage()
        if first_offset > 0:
            image = self._start(first_offset)
        self._fold = MetadataFold(findings, quorum, image)
        self._last_timestamp: int | None = None
        self._last_epoch: int | None = None

    def _start(self, first_offset: int) -> MetadataImage:
        """Return the state of the first snapshot that reaches the log's beginning."""
        while self._waiting:
            snapshot = self._waiting.pop()
            if snapshot.name.id.offset >= first_offset:
                self._from_offset = snapshot.name.id.offset
                # Its own epoch and time are compared when the log gets there.
                self._waiting.append(snapshot)
                return snapshot.image
        self.is_folded = False
        return MetadataImage()

    @property
    def image(self) -> MetadataImage | None:
        """The state at the end; None where the log could not be folded."""
        return self._fold.image() if self.is_folded and self._fold.is_trusted else None

    def note_damage(self) -> None:
        """From here on records are missing: nothing more can be folded."""
        self._fold.is_trusted = False

    def take(self, file: Path, batch: RecordBatch) -> None:
        """Take in the next batch of the log."""
        self._compare_up_to(batch.base_offset, within=batch)
        if self.is_folded:
            self._fold.take(file, batch, from_offset=self._from_offset)
        self._last_timestamp = batch.max_timestamp
        self._last_epoch = batch.partition_leader_epoch

    def at_end(self, end_offset: int) -> None:
        """Compare the snapshots that end where the log does."""
        self._compare_up_to(end_offset, within=None)
        for snapshot in self._waiting:
            problem = f"it ends at offset {snapshot.name.id.offset}, and the log at {end_offset}"
            self._findings.add(
                Rule.UNFINISHED, snapshot.path, problem, offset=end_offset, severity=Severity.NOTE
            )

    def _compare_up_to(self, offset: int, *, within: RecordBatch | None) -> None:
        """Compare the snapshots that end at `offset` or below with what was folded so far."""
        while self._waiting and self._waiting[-1].name.id.offset <= offset:
            snapshot = self._waiting.pop()
            end = snapshot.name.id.offset
            if end == offset and self._last_epoch is not None:
                self._compare(snapshot)
        if within is not None and self._waiting:
            end = self._waiting[-1].name.id.offset
            if within.base_offset < end <= within.last_offset:
                snapshot = self._waiting.pop()
                problem = (
                    f"it ends at offset {end}, within the batch of offsets {within.base_offset} "
                    f"to {within.last_offset} of the log"
                )
                self._findings.add(Rule.SNAPSHOT, snapshot.path, problem, offset=end)

    def _compare(self, snapshot: LoadedSnapshot) -> None:
        problem = self._problem_of(snapshot)
        if problem is not None:
            offset = snapshot.name.id.offset
            self._findings.add(Rule.SNAPSHOT, snapshot.path, problem, position=0, offset=offset)

    def _problem_of(self, snapshot: LoadedSnapshot) -> str | None:
        epoch = snapshot.name.id.epoch
        if epoch != self._last_epoch:
            return f"it is of epoch {epoch}, and the log has {self._last_epoch} there"
        stored = snapshot.last_contained_timestamp
        if stored != self._last_timestamp:
            return f"its last record is of {stored}, and that of the log of {self._last_timestamp}"
        is_known = self.is_folded and self._fold.is_trusted
        if not is_known or snapshot.name.id.offset <= self._from_offset:
            return None
        return _first_difference(self._fold.image().published, snapshot.image.published)


def _first_difference(folded: MetadataImage, stored: MetadataImage) -> str | None:
    """Return the first record that only one of two states has, or None."""
    try:
        ours, theirs = list(_records_of(folded)), list(_records_of(stored))
    except MetadataError:
        # A level of metadata.version without a record for all of the state: nothing to compare.
        return None
    known = set(ours)
    for text in theirs:
        if text not in known:
            return f"it has a record that the log up to there does not give: {text}"
    known = set(theirs)
    for text in ours:
        if text not in known:
            return f"it lacks a record that the log up to there gives: {text}"
    return None


def _records_of(image: MetadataImage) -> Iterator[str]:
    """Yield the records of a snapshot, without a leftover that Kafka's snapshots may have.

    Kafka keeps the configuration of a topic that was made, configured and removed again between
    two of its images.
    """
    for record, version in image_records(image):
        if not _is_leftover(record, image):
            yield f"{record} (version {version})"


def _is_leftover(record: Message, image: MetadataImage) -> bool:
    return (
        isinstance(record, ConfigRecord)
        and record.resource_type == ResourceType.TOPIC
        and record.resource_name not in image.topics.ids
    )


def load_snapshot(path: Path, findings: Findings, quorum: QuorumFacts) -> LoadedSnapshot | None:
    """Return a snapshot that is sound; None, with a finding, for any other one."""
    name = parse_snapshot_name(path.name)
    fold = _folded(path, findings, quorum, epoch=None if name is None else name.id.epoch)
    if fold is None or name is None:
        return None
    return LoadedSnapshot(name, path, fold.image(), fold.last_contained_timestamp)


def check_bootstrap_checkpoint(path: Path, findings: Findings) -> None:
    """Add findings for the first records of a cluster, which have the form of a snapshot."""
    quorum = QuorumFacts()
    _folded(path, findings, quorum, epoch=None)
    if quorum.voters:
        problem = "it holds the quorum's voters, which belong into the snapshot of offset 0"
        findings.add(Rule.SNAPSHOT, path, problem, position=0)


def _folded(
    path: Path, findings: Findings, quorum: QuorumFacts, *, epoch: int | None
) -> MetadataFold | None:
    """Fold a snapshot; every batch is of `epoch`, if that is given."""
    fold = MetadataFold(findings, quorum, MetadataImage())
    units = plan_files([path], findings)
    if not units:
        return None
    try:
        for unit in units:
            for item in read_unit(unit, has_gaps=False):
                if isinstance(item, Damage):
                    add_damage(item, findings, Rule.SNAPSHOT)
                    fold.is_trusted = False
                elif isinstance(item, RecordBatch):
                    _check_epoch(path, item, epoch, findings)
                    fold.take(path, item)
    except OSError as error:
        findings.unreadable(path, error)
        return None
    is_damaged = any(finding.is_damage for finding in findings.all if finding.file == path)
    return fold if fold.is_trusted and not is_damaged else None


def _check_epoch(path: Path, batch: RecordBatch, epoch: int | None, findings: Findings) -> None:
    found = batch.partition_leader_epoch
    if epoch is not None and found != epoch:
        findings.add(
            Rule.SNAPSHOT,
            path,
            f"a batch of epoch {found} in a snapshot of epoch {epoch}",
            position=batch.position,
            offset=batch.base_offset,
        )
