"""The directory of a replica's partition: opened, with the core's view of its log."""

from collections.abc import Iterator
from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation.common import replica_key
from kvorum.raft.effects import WriteElection
from kvorum.raft.log_view import LogView
from kvorum.raft.voter_set import (
    ElectionRecord,
    Endpoint,
    ReplicaKey,
    Voter,
    VoterSet,
    VoterSetHistory,
)
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import FileSystem
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_reader import read_snapshot_batches
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.errors import WireError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, read_batches
from kvorum.wire.uuid_text import ZERO_UUID

READ_BYTES = 8 * 1024 * 1024
"""The bytes of the log that are read at once: as many as the biggest batch has."""


class OpenedDirectory(NamedTuple):
    """The content of a directory."""

    log: MetadataLog
    election_file: QuorumStateFile
    stored: ElectionRecord | None
    view: LogView
    history: VoterSetHistory


class SnapshotControls(NamedTuple):
    """The voters and the kraft.version in a snapshot."""

    voters: VoterSet | None
    kraft_version: int


def open_directory(settings: RaftSettings, *, files: FileSystem, now_ms: int) -> OpenedDirectory:
    """Open the directory of a replica; `now_ms` is the wall clock. Raises StorageError.

    The small files are read first, because opening the log changes files after its checks.
    """
    election_file = QuorumStateFile(settings.directory, files)
    stored = _stored_election(election_file)
    log = MetadataLog.open(settings.directory, files=files, config=settings.log, now_ms=now_ms)
    try:
        history = _voter_history(settings, log)
    except BaseException:
        log.local_log.close()
        raise
    return OpenedDirectory(log, election_file, stored, _mirror(log), history)


def _stored_election(file: QuorumStateFile) -> ElectionRecord | None:
    state = file.read()
    if state is None:
        return None
    voted = None
    if state.voted_id is not None:
        voted = replica_key(state.voted_id, state.voted_directory_id or ZERO_UUID)
    return ElectionRecord(state.leader_epoch, state.leader_id, voted)


def write_election(file: QuorumStateFile, write: WriteElection) -> None:
    """Store an election record durably."""
    voted = write.record.voted
    file.write(
        QuorumState(
            leader_epoch=write.record.epoch,
            leader_id=write.record.leader_id,
            voted_id=None if voted is None else voted.id,
            voted_directory_id=None if voted is None else voted.directory_id,
            voters=write.voter_ids,
        ),
        version=min(write.kraft_version, 1),
    )


def _mirror(log: MetadataLog) -> LogView:
    local_log = log.local_log
    return LogView(
        start_offset=local_log.log_start_offset,
        end_offset=local_log.log_end_offset,
        durable_end_offset=local_log.recovery_point,
        epochs=list(local_log.epoch_starts),
        snapshots=log.snapshots.ids(),
    )


def _voter_history(settings: RaftSettings, log: MetadataLog) -> VoterSetHistory:
    """Return the voters and kraft.versions in the latest snapshot and the log after it."""
    history = VoterSetHistory(static=_static_voters(settings))
    start = log.local_log.log_start_offset
    latest = log.snapshots.latest()
    if latest is not None:
        controls = snapshot_controls(log, latest)
        history.start_from_snapshot(
            latest, voters=controls.voters, kraft_version=controls.kraft_version
        )
        start = max(start, min(latest.offset, log.local_log.log_end_offset))
    for batch in log_batches(log, start):
        found = quorum_controls(batch)
        for offset, version in found.kraft_versions:
            history.add_kraft_version(offset, version)
        for offset, voters in found.voters:
            history.add_voters(offset, voters)
    return history


def _static_voters(settings: RaftSettings) -> VoterSet:
    """Return the configured voters, without directory ids: those of kraft.version 0."""
    return VoterSet.of(
        Voter(ReplicaKey(one.id), (Endpoint(settings.controller_listener, one.host, one.port),))
        for one in settings.static_voters
    )


def log_batches(log: MetadataLog, offset: int) -> Iterator[RecordBatch]:
    """Yield the batches of a log from `offset` to its current end."""
    end_offset = log.local_log.log_end_offset
    while offset < end_offset:
        for batch in batches_of(log, log.local_log.read(offset, READ_BYTES, end_offset=end_offset)):
            yield batch
            offset = batch.next_offset


def batches_of(log: MetadataLog, data: memoryview) -> Iterator[RecordBatch]:
    """Yield the batches in bytes of a log; raises CorruptLogError for invalid bytes."""
    try:
        for batch in read_batches(data):
            batch.verify()
            yield batch
    except WireError as error:
        raise CorruptLogError(
            f"the log returned other bytes than were written: {error}", file=log.local_log.directory
        ) from error


def snapshot_controls(log: MetadataLog, snapshot_id: OffsetAndEpoch) -> SnapshotControls:
    """Return the quorum's records in the first batch of a snapshot. Raises StorageError."""
    voters: VoterSet | None = None
    kraft_version = 0
    reader = log.snapshots.open(snapshot_id)
    if reader is None:
        return SnapshotControls(None, 0)
    try:
        for header, data in read_snapshot_batches(reader):
            if not header.is_control:
                break
            for batch in batches_of(log, data):
                found = quorum_controls(batch)
                voters = found.voters[-1][1] if found.voters else voters
                kraft_version = (
                    found.kraft_versions[-1][1] if found.kraft_versions else kraft_version
                )
    finally:
        reader.close()
    return SnapshotControls(voters, kraft_version)
