"""The directory of a replica's partition, opened, with the core's view of its log."""

from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.node.raft.election_file import read_election
from kvorum.node.raft.log_batches import log_batches
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.snapshot_controls import snapshot_controls
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.endpoints import Endpoint
from kvorum.raft.log_view import LogView
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.storage.files import FileSystem
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import QuorumStateFile


class OpenedDirectory(NamedTuple):
    """The content of a directory."""

    log: MetadataLog
    election_file: QuorumStateFile
    stored: ElectionRecord | None
    view: LogView
    history: VoterSetHistory


def open_directory(settings: RaftSettings, *, files: FileSystem, now_ms: int) -> OpenedDirectory:
    """Open the directory of a replica; `now_ms` is the wall clock. Raises StorageError.

    The small files are read first, because opening the log changes files after its checks.
    """
    election_file = QuorumStateFile(settings.directory, files)
    stored = read_election(election_file)
    log = MetadataLog.open(settings.directory, files=files, config=settings.log, now_ms=now_ms)
    try:
        history = _voter_history(settings, log)
    except BaseException:
        log.local_log.close()
        raise
    return OpenedDirectory(log, election_file, stored, _log_view(log), history)


def _log_view(log: MetadataLog) -> LogView:
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
