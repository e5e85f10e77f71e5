"""The record of a recovery: a JSON file that stays in the recovered directory.

It is written before anything else is changed, with the state ``begun``, and replaced by one with
the state ``done`` at the end. A later run thus finds what was interrupted, and what is done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from kvorum.inspection.recovery.plan import RecoveryPlan
from kvorum.inspection.recovery.survivor import RecoveryRefusedError
from kvorum.raft.voter_set import VoterSet
from kvorum.storage.files import FileSystem, list_if_there, read_if_there, replace_durably
from kvorum.storage.small_files.quorum_state import QuorumState, encode_quorum_state
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
        text = json.dumps(self.fields, indent=2) + "\n"
        replace_durably(files, self.path, text.encode())

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
            "endpoints": [f"{one.name}://{one.host}:{one.port}" for one in voter.endpoints],
        }
        for voter in voters.voters
    ]


def _election(state: QuorumState | None, kraft_version: int) -> object:
    if state is None:
        return None
    return cast("object", json.loads(encode_quorum_state(state, min(kraft_version, 1))))
