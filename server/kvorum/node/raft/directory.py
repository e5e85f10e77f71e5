"""One partition's directory as a replica needs it: opened, and mirrored for the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation.common import replica_key
from kvorum.raft.basics import ElectionRecord, Endpoint, OffsetAndEpoch, ReplicaKey
from kvorum.raft.effects import WriteElection
from kvorum.raft.log_view import EpochStart, LogView
from kvorum.raft.voter_history import VoterHistory
from kvorum.raft.voter_set import Voter, VoterSet
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import FileSystem
from kvorum.storage.log import MetadataLog
from kvorum.storage.names import OffsetAndEpoch as SnapshotId
from kvorum.storage.quorum_state import QuorumState, QuorumStateFile
from kvorum.storage.snapshot_reader import read_snapshot_batches
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch, read_batches
from kvorum.wire.uuid_text import ZERO_UUID

READ_BYTES = 8 * 1024 * 1024
"""How much of the log is read at once when going through it: as much as the biggest batch."""


class OpenedDirectory(NamedTuple):
    """Everything that was found in a directory."""

    log: MetadataLog
    election_file: QuorumStateFile
    stored: ElectionRecord | None
    view: LogView
    history: VoterHistory


class SnapshotControls(NamedTuple):
    """What a snapshot says of voters and kraft.version, and when its last record was appended."""

    voters: VoterSet | None
    kraft_version: int


def open_directory(settings: RaftSettings, *, files: FileSystem, now_ms: int) -> OpenedDirectory:
    """Open the directory of a replica; `now_ms` is the wall clock. Raises StorageError."""
    log = MetadataLog.open(settings.directory, files=files, config=settings.log, now_ms=now_ms)
    try:
        election_file = QuorumStateFile(settings.directory, files)
        stored = _stored_election(election_file)
        history = _voter_history(settings, log)
    except BaseException:
        log.close()
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
    return LogView(
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        durable_end_offset=log.durable_offset,
        epochs=[EpochStart(entry.epoch, entry.start_offset) for entry in log.epoch_starts],
        snapshots=snapshot_ids(log),
    )


def snapshot_ids(log: MetadataLog) -> list[OffsetAndEpoch]:
    """Return the snapshots of a log as the core names them."""
    return [OffsetAndEpoch(known.offset, known.epoch) for known in log.snapshots.ids()]


def _voter_history(settings: RaftSettings, log: MetadataLog) -> VoterHistory:
    """Go through the latest snapshot and the log behind it for voters and kraft.version."""
    history = VoterHistory(static=_static_voters(settings))
    start = log.start_offset
    latest = log.snapshots.latest()
    if latest is not None:
        controls = snapshot_controls(log, latest)
        history.start_from_snapshot(
            OffsetAndEpoch(latest.offset, latest.epoch),
            voters=controls.voters,
            kraft_version=controls.kraft_version,
        )
        start = max(start, min(latest.offset, log.end_offset))
    for batch in log_batches(log, start):
        found = quorum_controls(batch)
        for offset, version in found.kraft_versions:
            history.add_kraft_version(offset, version)
        for offset, voters in found.voters:
            history.add_voters(offset, voters)
    return history


def _static_voters(settings: RaftSettings) -> VoterSet:
    """Return the configured voters: without directory ids, and at kraft.version 0 for good."""
    return VoterSet.of(
        Voter(
            ReplicaKey(one.id),
            (Endpoint(settings.controller_listener, one.host, one.port),),
        )
        for one in settings.static_voters
    )


def log_batches(log: MetadataLog, offset: int) -> Iterator[RecordBatch]:
    """Yield the batches of a log from `offset` to its end as of now."""
    end_offset = log.end_offset
    while offset < end_offset:
        for batch in batches_of(log, log.read(offset, READ_BYTES, end_offset=end_offset)):
            yield batch
            offset = batch.next_offset


def batches_of(log: MetadataLog, data: memoryview) -> Iterator[RecordBatch]:
    """Yield the batches in what was read from a log; CorruptLogError where they are none."""
    try:
        for batch in read_batches(data):
            batch.verify()
            yield batch
    except WireError as error:
        raise CorruptLogError(
            f"what was written is not what is read back: {error}", file=log.directory
        ) from error


def snapshot_controls(log: MetadataLog, snapshot_id: SnapshotId) -> SnapshotControls:
    """Return what the first batch of a snapshot says of the quorum. Raises StorageError."""
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
