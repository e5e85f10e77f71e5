"""The changes of a recovery, in an order in which a crash leaves the old quorum or the new one.

1. The record, with the state ``begun``.
2. At kraft.version 1: one batch at the end of the log, as the leader of the new epoch would begin
   it, with the new voters. Half a batch is cut off by the next start, so that this step happens as
   a whole or not at all; once it is durable, the new voters count, whatever happens next.
3. quorum-state, which is replaced as a whole. At kraft.version 0 this is the step that counts. A
   node that starts between 2 and 3 takes its epoch from the log.
4. The record, with the state ``done``.

Each step is durable before the next one begins. Opening the log makes the repairs that every start
makes: it removes marked and partial files, and rebuilds indexes.
"""

from contextlib import closing

from kvorum.inspection.recovery.plan import RecoveryPlan
from kvorum.inspection.recovery.record import Operator, RecoveryRecord, find_records, new_record
from kvorum.inspection.recovery.survivor import Survivor
from kvorum.node.raft.control_records import control_batch
from kvorum.raft.effects import AppendEpochStart
from kvorum.storage.errors import StorageError
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile


class LogChangedError(StorageError):
    """The log is not as it was when the recovery was planned."""


def lasting_recovery(survivor: Survivor, files: FileSystem) -> RecoveryRecord | None:
    """Return the record of a recovery that still determines the voters; a completed one first.

    One that is not done was interrupted after the step that counts.
    """
    latest_first = reversed(find_records(survivor.directory, files))
    lasting = (record for record in latest_first if _is_alone(survivor, record))
    return max(lasting, key=lambda record: record.is_done, default=None)


def recover(
    plan: RecoveryPlan, operator: Operator, files: FileSystem, *, now_ms: int
) -> RecoveryRecord:
    """Make the planned changes and return their record. Raises StorageError.

    The caller holds the lock of the directory since it was read.
    """
    abandoned = [
        record for record in find_records(plan.chosen.directory, files) if not record.is_done
    ]
    # An interrupted recovery has made that file itself.
    had_flushed_offset = plan.chosen.has_flushed_offset and all(
        record.had_flushed_offset for record in abandoned
    )
    record = new_record(plan, operator, had_flushed_offset=had_flushed_offset)
    record.write(files)
    for one in abandoned:
        if one.path != record.path:
            with disk_errors(one.path, "removing"):
                files.remove(one.path)
    if plan.is_dynamic:
        _append_voters(plan, files, now_ms=now_ms)
    return _finish(plan.chosen, record, plan.election, files)


def complete(survivor: Survivor, record: RecoveryRecord, files: FileSystem) -> RecoveryRecord:
    """Take the steps that an interrupted recovery did not reach; return its record."""
    election, stored = survivor.election_alone(record.epoch), survivor.election
    if stored is not None and stored.leader_epoch > record.epoch:
        # The node has run since: its own state is newer.
        election = stored
    return _finish(survivor, record, election, files)


def _finish(
    survivor: Survivor, record: RecoveryRecord, election: QuorumState, files: FileSystem
) -> RecoveryRecord:
    directory = survivor.log_directory
    if not record.had_flushed_offset:
        # Kafka does not keep this file up to date: its directories must not have it.
        path = directory / FLUSHED_OFFSET_FILE
        with disk_errors(path, "removing"):
            files.remove(path)
            files.sync_directory(directory)
    version = min(survivor.kraft_version, 1)
    QuorumStateFile(directory, files).write(election, version=version)
    done = record.completed()
    done.write(files)
    return done


def _append_voters(plan: RecoveryPlan, files: FileSystem, *, now_ms: int) -> None:
    log = MetadataLog.open(plan.chosen.log_directory, files=files, now_ms=now_ms)
    with closing(log.local_log):
        end_offset, before = log.local_log.log_end_offset, plan.chosen.end
        if (end_offset, log.last_epoch) != (before.offset, before.epoch):
            raise LogChangedError(
                f"the log ends at offset {end_offset} with epoch {log.last_epoch}, and not "
                f"at {before.offset} with epoch {before.epoch} as before",
                file=log.local_log.directory,
            )
        node_id = plan.voter.key.id
        start = AppendEpochStart(
            base_offset=end_offset,
            epoch=plan.epoch,
            leader_id=node_id,
            voter_ids=(node_id,),
            granting_ids=(node_id,),
            kraft_version=plan.chosen.kraft_version,
            voters=plan.voters,
        )
        log.local_log.append(control_batch(start, timestamp_ms=now_ms))
        log.local_log.flush()


def _is_alone(survivor: Survivor, record: RecoveryRecord) -> bool:
    """Return whether the survivor is the only voter because of that recovery."""
    if record.kraft_version > 0:
        return survivor.voters.is_only_voter(survivor.key) and any(
            one.end.epoch == record.epoch and one.end.offset > record.log_end_offset
            for one in survivor.recorded
        )
    state = survivor.election
    if state is None or state.leader_epoch < record.epoch:
        return False
    return state.voters == (survivor.key.id,)
