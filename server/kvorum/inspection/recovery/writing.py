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

The record is a JSON file that stays in the recovered directory. It is written before anything else
is changed, with the state ``begun``, and replaced by one with the state ``done`` at the end. A
later run thus finds what was interrupted, and what is done.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from kvorum.inspection.recovery.plan import RecoveryPlan
from kvorum.inspection.recovery.survivor import RecoveryRefusedError, Survivor
from kvorum.metadata.address import Address
from kvorum.node.raft.control_records import control_batch
from kvorum.raft.effects import AppendEpochStart
from kvorum.raft.voter_set import VoterSet
from kvorum.storage.errors import StorageError
from kvorum.storage.files import (
    FileSystem,
    disk_errors,
    list_if_there,
    read_if_there,
    replace_durably,
)
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import (
    QuorumState,
    QuorumStateFile,
    encode_quorum_state,
)
from kvorum.wire.uuid_text import uuid_to_text

_PREFIX = "kvorum-quorum-recovery-"
_SUFFIX = ".json"
_BEGUN = "begun"
_DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The user who recovers, the time (ISO 8601, UTC), and the command line."""

    user: str
    host: str
    command: tuple[str, ...]
    version: str
    time: str


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """One such file; `fields` is its JSON object."""

    path: Path
    fields: dict[str, object]

    @property
    def is_done(self) -> bool:
        """Whether the recovery was completed."""
        return self.fields.get("state") == _DONE

    @property
    def time(self) -> str:
        """When the recovery began."""
        return str(self.fields.get("time"))

    @property
    def epoch(self) -> int:
        """The epoch of the recovery."""
        return cast("int", self._part("after")["epoch"])

    @property
    def log_end_offset(self) -> int:
        """The end of the log before the recovery."""
        return cast("int", self._part("before")["logEndOffset"])

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the log."""
        return cast("int", self.fields["kraftVersion"])

    @property
    def had_flushed_offset(self) -> bool:
        """Whether the directory was one of ours, which has a flushed offset."""
        return cast("bool", self._part("before")["hasFlushedOffset"])

    def completed(self) -> RecoveryRecord:
        """Return the record of the completed recovery."""
        return replace(self, fields={**self.fields, "state": _DONE})

    def write(self, files: FileSystem) -> None:
        """Write the file durably; an older one of that name is replaced."""
        replace_durably(files, self.path, (json.dumps(self.fields, indent=2) + "\n").encode())

    def _part(self, name: str) -> dict[str, object]:
        return cast("dict[str, object]", self.fields[name])


def find_records(directory: Path, files: FileSystem) -> list[RecoveryRecord]:
    """Return the records in a directory, oldest first; RecoveryRefusedError for a damaged one."""
    found: list[RecoveryRecord] = []
    for name in list_if_there(files, directory):
        if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
            continue
        path = directory / name
        try:
            value = cast("object", json.loads(read_if_there(files, path) or b""))
            record = RecoveryRecord(path, cast("dict[str, object]", value))
            _ = (record.epoch, record.log_end_offset, record.kraft_version)
            _ = record.had_flushed_offset
        except (ValueError, KeyError, TypeError) as error:
            raise RecoveryRefusedError(
                f"{path} is not the record of a recovery: {error!r}. Move it away"
            ) from error
        found.append(record)
    return found


def new_record(
    plan: RecoveryPlan, operator: Operator, *, had_flushed_offset: bool
) -> RecoveryRecord:
    """Return the record of a recovery that is about to begin."""
    chosen, forecast = plan.chosen, plan.forecast
    stamp = operator.time.replace(":", "").replace("-", "")
    fields: dict[str, object] = {
        "version": 1,
        "state": _BEGUN,
        "time": operator.time,
        "user": operator.user,
        "host": operator.host,
        "command": list(operator.command),
        "kvorumVersion": operator.version,
        "clusterId": chosen.cluster_id,
        "nodeId": chosen.key.id,
        "kraftVersion": chosen.kraft_version,
        "before": {
            "logEndOffset": chosen.end.offset,
            "lastEpoch": chosen.end.epoch,
            "voters": _voters(chosen.voters),
            "quorumState": _election(chosen.election, chosen.kraft_version),
            "hasFlushedOffset": had_flushed_offset,
        },
        "after": {
            "epoch": plan.epoch,
            "voters": _voters(plan.voters),
            "quorumState": _election(plan.election, chosen.kraft_version),
        },
        "forecast": {
            "keptBelowOffset": forecast.kept.offset,
            "keptLastEpoch": forecast.kept.epoch,
            "provenCommittedBelowOffset": forecast.committed.end.offset,
            "provenCommittedBecause": forecast.committed.proof.value,
            "lostVoterIds": list(forecast.lost_ids),
            "lossOfAcknowledgedRecords": forecast.loss.value,
        },
        "directories": [
            {
                "path": str(one.directory),
                "nodeId": one.key.id,
                "isVoter": one.is_voter,
                "logEndOffset": one.end.offset,
                "lastEpoch": one.end.epoch,
            }
            for one in plan.survivors
        ],
    }
    return RecoveryRecord(chosen.directory / f"{_PREFIX}{stamp}{_SUFFIX}", fields)


def _voters(voters: VoterSet) -> list[dict[str, object]]:
    return [
        {
            "id": voter.key.id,
            "directoryId": uuid_to_text(voter.key.directory_id) if voter.key.directory_id else None,
            "endpoints": [f"{one.name}://{Address(one.host, one.port)}" for one in voter.endpoints],
        }
        for voter in voters.voters
    ]


def _election(state: QuorumState | None, kraft_version: int) -> object:
    if state is None:
        return None
    return cast("object", json.loads(encode_quorum_state(state, min(kraft_version, 1))))


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
    QuorumStateFile(directory, files).write(election, version=min(survivor.kraft_version, 1))
    done = record.completed()
    done.write(files)
    return done


def _append_voters(plan: RecoveryPlan, files: FileSystem, *, now_ms: int) -> None:
    log = MetadataLog.open(plan.chosen.log_directory, files=files, now_ms=now_ms)
    with closing(log.local_log):
        end_offset = log.log_end_offset
        before = plan.chosen.end
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
