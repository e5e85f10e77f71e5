"""One surviving directory: its log, its voters and its election state, read without any change.

The control records of a log prove voters, last leader, and what is committed.
A leader does not write into its log how much of it is committed. But some records are proof:

- a snapshot is made of committed records only;
- a leader takes records, and changes of the voters, only after the batch that begins its epoch is
  committed; so the second batch of an epoch proves that the first one is committed;
- a leader changes the voters only after the change before is committed; so a VotersRecord proves
  that of the VotersRecord before it.

Everything below a committed record is committed. Records after the last proof may or may not be:
no file of one replica shows that. (``kvorum-flushed-offset`` is about durability on one disk.)
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.raft import ReplicaKey
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.storage.errors import CorruptLogError, StorageError
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.recovery import CheckedSegments, TornTail
from kvorum.storage.log.segment_scan import scan_batches
from kvorum.storage.metadata_log.flushed_offset import FlushedOffsetFile
from kvorum.storage.metadata_log.log_opening import CheckedDirectory, check_directory
from kvorum.storage.metadata_log.snapshot_reader import read_snapshot_batches
from kvorum.storage.metadata_log.snapshots import SnapshotStore
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.errors import WireError
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, decode_control_record, read_batches

NOTHING_COMMITTED = OffsetAndEpoch(0, 0)
_ADVICE = (
    "Nothing was written. Leave the directory out and recover from another one, or repair a copy "
    "of it; kvorum dump-log prints what is left"
)


class Proof(Enum):
    """The reason why a part of a log is known to be committed."""

    NONE = "no record proves that anything is committed"
    SNAPSHOT = "a snapshot ends there"
    EPOCH_START = "the leader of that epoch took records behind it"
    VOTERS = "the voters were changed again behind it"


class Committed(NamedTuple):
    """The end of the part of a log that is known to be committed, and the proof of that."""

    end: OffsetAndEpoch = NOTHING_COMMITTED
    proof: Proof = Proof.NONE


class RecordedVoters(NamedTuple):
    """A VotersRecord: the end of the log up to and with it, and the voters in it."""

    end: OffsetAndEpoch
    voters: VoterSet


class EpochBeginning(NamedTuple):
    """The batch that begins a leader's epoch: the leader, and the log's end after the batch."""

    leader_id: int
    end: OffsetAndEpoch


@dataclass(slots=True)
class LogFacts:
    """The facts of a log; `add` takes its batches in order, from the latest snapshot on."""

    history: VoterSetHistory
    committed: Committed = field(default_factory=Committed)
    recorded: list[RecordedVoters] = field(default_factory=list[RecordedVoters])
    epoch_beginning: EpochBeginning | None = None

    def start_from_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, voters: VoterSet | None, kraft_version: int
    ) -> None:
        """Begin with the contents of a snapshot."""
        self.history.start_from_snapshot(snapshot_id, voters=voters, kraft_version=kraft_version)
        self._prove(snapshot_id, Proof.SNAPSHOT)
        if voters is not None:
            self.recorded.append(RecordedVoters(snapshot_id, voters))

    def note_data(self, epoch: int) -> None:
        """Note a batch that holds no control records."""
        beginning = self.epoch_beginning
        if beginning is not None and beginning.end.epoch == epoch:
            self._prove(beginning.end, Proof.EPOCH_START)

    def note_control(self, batch: RecordBatch) -> None:
        """Note a control batch; raises WireError for one that cannot be decoded."""
        epoch = batch.partition_leader_epoch
        leader_id = _leader_of(batch)
        if leader_id is None:
            self.note_data(epoch)
        else:
            end = OffsetAndEpoch(batch.next_offset, epoch)
            self.epoch_beginning = EpochBeginning(leader_id, end)
        found = quorum_controls(batch)
        for offset, version in found.kraft_versions:
            self.history.add_kraft_version(offset, version)
        for offset, voters in found.voters:
            self.history.add_voters(offset, voters)
            if leader_id is None and self.recorded:
                self._prove(self.recorded[-1].end, Proof.VOTERS)
            self.recorded.append(RecordedVoters(OffsetAndEpoch(offset + 1, epoch), voters))

    def leader_of(self, epoch: int) -> int | None:
        """Return the leader of the log's last epoch; None if its beginning is not in the log."""
        beginning = self.epoch_beginning
        return None if beginning is None or beginning.end.epoch != epoch else beginning.leader_id

    def _prove(self, end: OffsetAndEpoch, proof: Proof) -> None:
        if end > self.committed.end:
            self.committed = Committed(end, proof)


def _leader_of(batch: RecordBatch) -> int | None:
    """Return the leader whose epoch a control batch begins; None for any other control batch."""
    first = next(iter(batch.records()), None)
    message = None if first is None else decode_control_record(first).message
    return message.leader_id if isinstance(message, LeaderChangeMessage) else None


class RecoveryRefusedError(Exception):
    """The quorum cannot, or need not, be recovered in this way; the text is one line."""


def refusal_of(error: StorageError, directory: object) -> RecoveryRefusedError:
    """Return the refusal of a directory that cannot be read; it names file and position.

    The advice of the error itself, to fetch the log again, is of no use without a quorum.
    """
    where = directory if error.file is None else error.file
    position = "" if error.offset is None else f" (at byte {error.offset})"
    return RecoveryRefusedError(f"{where}: {error.problem}{position}. {_ADVICE}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """The content of one directory, as far as a recovery needs it.

    `end` is where the log ends when its node starts: after the last sound batch, or at the end of
    the latest snapshot where that is further. `voters` are the latest that the replica knows, also
    if the record of them was never committed; `committed` is what it can prove.
    """

    directory: Path
    cluster_id: str
    key: ReplicaKey
    start_offset: int
    end: OffsetAndEpoch
    snapshot: OffsetAndEpoch | None
    committed: Committed
    recorded: tuple[RecordedVoters, ...]
    last_leader_id: int | None
    kraft_version: int
    voters: VoterSet
    election: QuorumState | None
    has_flushed_offset: bool
    torn_tail: TornTail | None

    @property
    def log_directory(self) -> Path:
        """The directory of the metadata log's partition."""
        return self.directory / METADATA_LOG_DIRECTORY

    @property
    def is_voter(self) -> bool:
        """Whether the replica is one of the voters that it knows."""
        return self.voters.is_voter(self.key)

    @property
    def is_dynamic(self) -> bool:
        """Whether the voters are recorded in the log (kraft.version 1)."""
        return self.kraft_version > 0

    @property
    def epoch(self) -> int:
        """The highest epoch that the directory names."""
        stored = 0 if self.election is None else self.election.leader_epoch
        return max(stored, self.end.epoch)

    def election_alone(self, epoch: int) -> QuorumState:
        """Return the election state of the only voter, after a recovery in `epoch`.

        At kraft.version 1 the node led the epoch whose first batch is written; as after any restart
        of a lone voter it then begins another one.
        """
        if self.is_dynamic:
            return QuorumState(leader_epoch=epoch, leader_id=self.key.id)
        return QuorumState(leader_epoch=epoch, voters=(self.key.id,))


def read_survivor(directory: Path, files: FileSystem, *, static_voters: VoterSet) -> Survivor:
    """Read a metadata log directory (the parent of ``__cluster_metadata-0``); change nothing.

    `static_voters` are the configured ones, if known; see `_static_voters`. The caller holds the
    directory's lock. Raises RecoveryRefusedError for a directory that is damaged, or is not one of
    a KRaft node.
    """
    try:
        return _survivor(directory, files, static_voters)
    except StorageError as error:
        raise refusal_of(error, directory) from error


def _identity(directory: Path, files: FileSystem) -> tuple[str, ReplicaKey]:
    """Return the ids of a directory's cluster, node and of the directory itself."""
    properties = read_meta_properties(directory, files)
    if properties is None:
        raise RecoveryRefusedError(
            f"{directory} has no {META_PROPERTIES_FILE}: name the directories that contain "
            f"{METADATA_LOG_DIRECTORY} (metadata.log.dir, or the first of log.dirs)"
        )
    if properties.cluster_id is None or properties.node_id is None:
        missing = "cluster.id" if properties.cluster_id is None else "node.id"
        raise RecoveryRefusedError(f"{directory / META_PROPERTIES_FILE} has no {missing}")
    return properties.cluster_id, ReplicaKey(properties.node_id, properties.directory_id)


def _checked_log(directory: Path, files: FileSystem) -> CheckedDirectory:
    log_directory = directory / METADATA_LOG_DIRECTORY
    with disk_errors(log_directory, "reading"):
        is_there = files.exists(log_directory)
    if not is_there:
        raise RecoveryRefusedError(
            f"{directory} contains no {METADATA_LOG_DIRECTORY}: it is not the metadata log "
            "directory of its node, or the node never started"
        )
    return check_directory(log_directory, files=files, config=LogConfig())


def _survivor(directory: Path, files: FileSystem, static_voters: VoterSet) -> Survivor:
    cluster_id, key = _identity(directory, files)
    log_directory = directory / METADATA_LOG_DIRECTORY
    election = QuorumStateFile(log_directory, files).read()
    has_flushed_offset = FlushedOffsetFile(log_directory, files).read() is not None
    checked = _checked_log(directory, files)
    with closing(checked.segments):
        snapshot = checked.snapshots.latest()
        end = OffsetAndEpoch(checked.segments.end_offset, checked.segments.epochs.latest_epoch or 0)
        facts = _facts(checked, static=_static_voters(election, static_voters), log_end=end)
        end = end if snapshot is None else max(end, snapshot)
        return Survivor(
            directory=directory,
            cluster_id=cluster_id,
            key=key,
            start_offset=checked.segments.start_offset,
            end=end,
            snapshot=snapshot,
            committed=facts.committed,
            recorded=tuple(facts.recorded),
            last_leader_id=facts.leader_of(end.epoch),
            kraft_version=facts.history.kraft_version,
            voters=facts.history.voters,
            election=election,
            has_flushed_offset=has_flushed_offset,
            torn_tail=checked.segments.torn_tail,
        )


def _static_voters(election: QuorumState | None, configured: VoterSet) -> VoterSet:
    """Return the voters at kraft.version 0.

    Those of quorum-state are what the node ran with last; the configuration, which may have been
    changed since, adds their addresses.
    """
    ids = () if election is None else election.voters or ()
    if not ids:
        return configured
    return VoterSet.of(
        Voter(ReplicaKey(one), configured.endpoints_of(one)) for one in dict.fromkeys(ids)
    )


def _facts(checked: CheckedDirectory, *, static: VoterSet, log_end: OffsetAndEpoch) -> LogFacts:
    facts = LogFacts(VoterSetHistory(static=static))
    latest = checked.snapshots.latest()
    first_offset = checked.segments.start_offset
    if latest is not None:
        _note_snapshot(facts, checked.snapshots, latest)
        first_offset = max(first_offset, latest.offset)
    # A snapshot that is further than the log takes the log's place at the next start.
    if latest is None or latest <= log_end:
        _note_batches(facts, checked.segments, first_offset)
    return facts


def _note_snapshot(facts: LogFacts, snapshots: SnapshotStore, snapshot_id: OffsetAndEpoch) -> None:
    voters: VoterSet | None = None
    kraft_version = 0
    for batch in _control_batches(snapshots, snapshot_id):
        found = quorum_controls(batch)
        voters = found.voters[-1][1] if found.voters else voters
        kraft_version = found.kraft_versions[-1][1] if found.kraft_versions else kraft_version
    facts.start_from_snapshot(snapshot_id, voters=voters, kraft_version=kraft_version)


def _control_batches(
    snapshots: SnapshotStore, snapshot_id: OffsetAndEpoch
) -> Iterator[RecordBatch]:
    """Yield the batches before the first data of a snapshot."""
    reader = snapshots.open(snapshot_id)
    if reader is None:
        return
    with closing(reader):
        try:
            for header, data in read_snapshot_batches(reader):
                if not header.is_control:
                    return
                yield from read_batches(data)
        except WireError as error:
            raise CorruptLogError(str(error), file=reader.path) from error


def _note_batches(facts: LogFacts, segments: CheckedSegments, first_offset: int) -> None:
    """Note every batch from `first_offset` on; the checksums were verified before."""
    for segment in segments.segments:
        if segment.end_offset <= first_offset:
            continue
        with disk_errors(segment.path, "reading"):
            for position, header in scan_batches(segment.file, end=segment.size, verify=False):
                if header.next_offset <= first_offset:
                    continue
                if not header.is_control:
                    facts.note_data(header.leader_epoch)
                    continue
                data = segment.file.read_at(position, header.size)
                try:
                    for batch in read_batches(data):
                        facts.note_control(batch)
                except WireError as error:
                    raise CorruptLogError(
                        f"a control batch that cannot be read: {error}",
                        file=segment.path,
                        offset=position,
                    ) from error
