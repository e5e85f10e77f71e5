"""quorum-state compared with the log: the epoch, the leader and the vote."""

from __future__ import annotations

from pathlib import Path

from kvorum.inspection.layouts.text_files import quorum_state
from kvorum.inspection.log_check.findings import Findings, Rule
from kvorum.inspection.log_check.metadata_check import QuorumFacts
from kvorum.inspection.log_check.reading_files import read_whole
from kvorum.storage.errors import StorageError
from kvorum.storage.small_files.quorum_state import QuorumState, decode_quorum_state


def check_quorum_state(
    path: Path, findings: Findings, quorum: QuorumFacts, *, last_epoch: int
) -> None:
    """Add a finding where the file is damaged, or cannot be that of this log.

    `last_epoch` is the highest one in the log and its snapshots.
    """
    data = read_whole(path, findings)
    if data is None:
        return
    problem = quorum_state(data).problem
    if problem is not None:
        findings.add(Rule.QUORUM_STATE, path, problem.text, position=problem.position)
        return
    try:
        state = decode_quorum_state(data, path)
    except StorageError as error:
        findings.add(Rule.QUORUM_STATE, path, error.problem, position=0)
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
