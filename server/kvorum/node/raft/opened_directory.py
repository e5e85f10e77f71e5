"""The directory of a replica's partition, opened, with the core's view of its log.

Control records of the metadata log are converted to the core's values and back.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation.common import directory_id_of, read_endpoints, replica_key
from kvorum.raft.effects import AppendEpochStart, AppendVoters, WriteElection
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.endpoints import Endpoint
from kvorum.raft.log_view import LogView
from kvorum.raft.messages import BatchSummary
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import FileSystem
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_reader import read_snapshot_batches
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    build_control_batch,
    decode_control_record,
    read_batches,
)
from kvorum.wire.uuid_text import ZERO_UUID

READ_BYTES = 8 * 1024 * 1024
"""The bytes of the log that are read at once: as many as the biggest batch has."""


class FetchedRecords(NamedTuple):
    """Records of a response: their bytes, the core's view of them, and the end of each batch."""

    data: memoryview
    batches: tuple[BatchSummary, ...]
    ends: tuple[int, ...]

    def first(self, batch_count: int) -> memoryview:
        """Return the bytes of the first batches."""
        return self.data[: self.ends[batch_count - 1]]


class QuorumControls(NamedTuple):
    """The voter sets and kraft.versions in a batch, with their offsets."""

    voters: tuple[tuple[int, VoterSet], ...]
    kraft_versions: tuple[tuple[int, int], ...]


def read_fetched(data: memoryview) -> FetchedRecords:
    """Validate fetched records; raises CorruptBatchError for records that must not be stored.

    An incomplete batch at the end, where the response reached its maximum size, is left out.
    """
    summaries: list[BatchSummary] = []
    ends: list[int] = []
    for batch in read_batches(data, is_cut_allowed=True):
        batch.verify()
        controls = quorum_controls(batch)
        summaries.append(
            BatchSummary(
                base_offset=batch.base_offset,
                last_offset=batch.last_offset,
                epoch=batch.partition_leader_epoch,
                voters=controls.voters,
                kraft_versions=controls.kraft_versions,
            )
        )
        ends.append(batch.position + batch.size)
    return FetchedRecords(data, tuple(summaries), tuple(ends))


def quorum_controls(batch: RecordBatch) -> QuorumControls:
    """Return the voters and kraft.versions in a batch; raises CorruptBatchError."""
    if not batch.is_control:
        return QuorumControls((), ())
    voters: list[tuple[int, VoterSet]] = []
    versions: list[tuple[int, int]] = []
    for record in batch.records():
        message = decode_control_record(record).message
        if isinstance(message, VotersRecord):
            voters.append((record.offset, voter_set_of(message)))
        elif isinstance(message, KRaftVersionRecord):
            versions.append((record.offset, message.k_raft_version))
    return QuorumControls(tuple(voters), tuple(versions))


def control_batch(effect: AppendEpochStart | AppendVoters, *, timestamp_ms: int) -> bytes:
    """Return the batch that begins a leader's epoch, or that changes the voters.

    With the voters, it may change kraft.version.
    """
    if isinstance(effect, AppendEpochStart):
        controls = [ControlRecord(ControlRecordType.LEADER_CHANGE, _leader_change(effect))]
        if effect.voters is not None:
            controls += quorum_control_records(effect.kraft_version, effect.voters)
    elif effect.kraft_version is not None:
        controls = quorum_control_records(effect.kraft_version, effect.voters)
    else:
        controls = [ControlRecord(ControlRecordType.KRAFT_VOTERS, voters_record_of(effect.voters))]
    return build_control_batch(
        controls, base_offset=effect.base_offset, epoch=effect.epoch, timestamp_ms=timestamp_ms
    )


def _leader_change(start: AppendEpochStart) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        version=0,
        leader_id=start.leader_id,
        voters=[LeaderChangeMessage.Voter(voter_id) for voter_id in start.voter_ids],
        granting_voters=[LeaderChangeMessage.Voter(voter_id) for voter_id in start.granting_ids],
    )


def quorum_control_records(kraft_version: int, voters: VoterSet | None) -> list[ControlRecord]:
    """Return the records for kraft.version and voters: none below version 1."""
    if kraft_version < 1:
        return []
    version = KRaftVersionRecord(version=0, k_raft_version=kraft_version)
    controls = [ControlRecord(ControlRecordType.KRAFT_VERSION, version)]
    if voters is not None:
        controls.append(ControlRecord(ControlRecordType.KRAFT_VOTERS, voters_record_of(voters)))
    return controls


def voters_record_of(voters: VoterSet) -> VotersRecord:
    """Return the record that contains a voter set."""
    return VotersRecord(
        version=0,
        voters=[
            VotersRecord.Voter(
                voter_id=voter.key.id,
                voter_directory_id=directory_id_of(voter.key),
                endpoints=[
                    VotersRecord.Endpoint(one.name, one.host, one.port) for one in voter.endpoints
                ],
                k_raft_version_feature=VotersRecord.KRaftVersionFeature(
                    voter.kraft_version_min, voter.kraft_version_max
                ),
            )
            for voter in voters.voters
        ],
    )


def voter_set_of(record: VotersRecord) -> VoterSet:
    """Return the voter set in a record; raises CorruptBatchError for an impossible one."""
    try:
        return VoterSet.of(
            Voter(
                key=replica_key(one.voter_id, one.voter_directory_id),
                endpoints=read_endpoints(one.endpoints),
                kraft_version_min=one.k_raft_version_feature.min_supported_version,
                kraft_version_max=one.k_raft_version_feature.max_supported_version,
            )
            for one in record.voters
        )
    except ValueError as error:
        raise CorruptBatchError("VotersRecord", str(error)) from error


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
    start = log.log_start_offset
    latest = log.snapshots.latest()
    if latest is not None:
        controls = snapshot_controls(log, latest)
        history.start_from_snapshot(
            latest, voters=controls.voters, kraft_version=controls.kraft_version
        )
        start = max(start, min(latest.offset, log.log_end_offset))
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
    end_offset = log.log_end_offset
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
