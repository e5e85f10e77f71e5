"""The epochs of leader-epoch-checkpoint and quorum-state, compared with those of the log."""

from bisect import bisect_right
from collections.abc import Collection
from pathlib import Path

from kvorum.inspection.layouts.text_files import leader_epoch_checkpoint, quorum_state
from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.listing import read_text
from kvorum.inspection.log_check.metadata_check import QuorumFacts
from kvorum.storage.log.epochs import decode_leader_epochs
from kvorum.storage.small_files.quorum_state import QuorumState, decode_quorum_state
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry
from kvorum.wire.valid_offset_and_epoch import EpochStart


class EpochCheck:
    """The comparison of one log's batches, in their order, with the file's entries.

    Without a file nothing is compared: a start makes it again.
    """

    def __init__(self, path: Path | None, findings: Findings) -> None:
        self._path = path
        self._findings = findings
        self._entries: list[EpochStart] | None = None
        self._is_broken = False
        if path is not None:
            stored = read_text(
                path, decode_leader_epochs, leader_epoch_checkpoint, findings, Rule.EPOCHS
            )
            self._entries = None if stored is None else list(stored)

    def take(self, file: Path, entry: Entry) -> None:
        """Compare one batch; the first difference is a finding."""
        if self._entries is None or self._path is None or self._is_broken:
            return
        if not isinstance(entry, RecordBatch) or entry.partition_leader_epoch < 0:
            return
        last = self._entries[-1] if self._entries else EpochStart(-1, -1)
        if entry.partition_leader_epoch > last.epoch and entry.base_offset > last.start_offset:
            self._note_later(self._path, self._entries, entry)
            return
        problem = self._problem(self._entries, entry)
        if problem is not None:
            self._is_broken = True
            text = f"{problem} ({file.name} at byte {entry.position})"
            self._findings.add(Rule.EPOCHS, self._path, text, offset=entry.base_offset)
            self._findings.add(
                Rule.EPOCHS, file, problem, position=entry.position, offset=entry.base_offset
            )

    def _note_later(self, path: Path, entries: list[EpochStart], batch: RecordBatch) -> None:
        """Go on as if the batch's epoch were stored: a running node stores it a little later."""
        entries.append(EpochStart(batch.partition_leader_epoch, batch.base_offset))
        problem = f"epoch {batch.partition_leader_epoch} of the batches is not stored yet"
        self._findings.add(
            Rule.UNFINISHED, path, problem, offset=batch.base_offset, severity=Severity.NOTE
        )

    def _problem(self, entries: list[EpochStart], batch: RecordBatch) -> str | None:
        epoch, first = batch.partition_leader_epoch, batch.base_offset
        index = bisect_right(entries, first, key=lambda entry: entry.start_offset)
        following = entries[index] if index < len(entries) else None
        if following is not None and following.start_offset <= batch.last_offset:
            # The log may have been made to start within its first batches.
            is_start = index == 0
            if not is_start:
                start = following.start_offset
                return f"epoch {following.epoch} is stored to begin at {start}, within a batch"
        if index == 0:
            if epoch > entries[0].epoch:
                return f"a batch of epoch {epoch} below the first stored epoch {entries[0].epoch}"
            return None
        stored = entries[index - 1].epoch
        return None if epoch == stored else f"a batch of epoch {epoch}, where {stored} is stored"

    def at_end(self, *, end_offset: int, first_offset: int, starts: Collection[int] | None) -> None:
        """Compare the entries with where the log ends, and where it may start.

        `starts` are the offsets above the first segment's at which the log may have been made to
        start; None where nothing is known of that.
        """
        if not self._entries or self._path is None:
            return
        first, last = self._entries[0], self._entries[-1]
        if last.start_offset > end_offset:
            problem = (
                f"epoch {last.epoch} is stored to begin at offset {last.start_offset}, and the "
                f"log ends at {end_offset}"
            )
            self._findings.add(Rule.LOG_END, self._path, problem, offset=end_offset)
        if first.start_offset < first_offset:
            problem = (
                f"the first epoch is stored to begin at offset {first.start_offset}, and the log "
                f"begins at {first_offset}"
            )
            self._findings.add(
                Rule.UNFINISHED,
                self._path,
                problem,
                offset=first.start_offset,
                severity=Severity.NOTE,
            )
        is_within = first_offset < first.start_offset
        if is_within and starts is not None and first.start_offset not in starts:
            problem = (
                f"the first epoch is stored to begin at offset {first.start_offset}, where the "
                "log does not start"
            )
            self._findings.add(Rule.EPOCHS, self._path, problem, offset=first.start_offset)

    def note_missing(self, directory: Path) -> None:
        """Add a note where the file is missing."""
        if self._path is None:
            problem = "the file is missing"
            path = directory / "leader-epoch-checkpoint"
            self._findings.add(Rule.EPOCHS, path, problem, severity=Severity.NOTE)


def check_quorum_state(
    path: Path, findings: Findings, quorum: QuorumFacts, *, last_epoch: int
) -> None:
    """Add a finding where the file is damaged, or cannot be that of this log.

    `last_epoch` is the highest one in the log and its snapshots.
    """
    state = read_text(path, decode_quorum_state, quorum_state, findings, Rule.QUORUM_STATE)
    if state is None:
        return
    wrong = _problem_of(state, quorum, last_epoch)
    if wrong is not None:
        findings.add(Rule.QUORUM_STATE, path, wrong, position=0)


def _problem_of(state: QuorumState, quorum: QuorumFacts, last_epoch: int) -> str | None:
    if state.leader_epoch < last_epoch:
        return f"its epoch is {state.leader_epoch}, and the log has epoch {last_epoch}"
    leader = quorum.leaders.get(state.leader_epoch)
    if state.leader_id is not None and leader not in {None, state.leader_id}:
        return f"{state.leader_id} leads epoch {state.leader_epoch}, where the log names {leader}"
    voters = quorum.voters.keys() | set(state.voters or ())
    for role, node in (("leader", state.leader_id), ("candidate voted for", state.voted_id)):
        if voters and node is not None and node not in voters:
            return f"the {role}, {node}, was no voter: {sorted(voters)} were"
    directories = quorum.voters.get(-1 if state.voted_id is None else state.voted_id, set())
    voted = state.voted_directory_id
    if voted is not None and directories and voted not in directories:
        return f"the directory voted for is none that voter {state.voted_id} had"
    return None
