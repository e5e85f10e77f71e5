"""How a change of the voters ends: committed, out of time, given up, or with its leader."""

from __future__ import annotations

from kvorum.raft.effects import Answer
from kvorum.raft.messages import AddRaftVoterResponse, Error, RemoveRaftVoterResponse
from kvorum.raft.peers import NEVER
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.voter_changes.pending import PendingRemove
from kvorum.wire.error_codes import ErrorCode


def poll_change(replica: Replica, now: float) -> None:
    """End the change under way if it is committed, out of time, or the leadership is lost."""
    change = replica.change
    if change is None:
        return
    offset, known = change.record_offset, replica.high_watermark
    if not isinstance(replica.role, Leader):
        end_change(replica, Error.NOT_LEADER_OR_FOLLOWER)
    elif offset is not None and known is not None and offset < known:
        end_change(replica, Error.NONE)
    elif change.deadline <= now:
        end_change(replica, Error.REQUEST_TIMED_OUT)


def change_deadline(replica: Replica) -> float:
    """Return when the change under way is out of time."""
    return NEVER if replica.change is None else replica.change.deadline


def end_change(replica: Replica, error: Error, message: str | None = None) -> None:
    """Answer who asked for the change under way, and let the next one come.

    The record of a change that is out of time stays in the log, and may be committed yet.
    """
    answer_change(replica, error, message)
    replica.change = None


def answer_change(replica: Replica, error: Error, message: str | None = None) -> None:
    """Tell who asked for the change under way what came of it, unless that is done already."""
    change = replica.change
    text = _default_message(error) if message is None else message
    if isinstance(change, PendingRemove):
        replica.outbox.add(Answer(change.token, RemoveRaftVoterResponse(error, text)))
    elif change is not None and not change.is_answered:
        change.is_answered = True
        replica.outbox.add(Answer(change.token, AddRaftVoterResponse(error, text)))


def _default_message(error: Error) -> str | None:
    return None if error is Error.NONE else ErrorCode(error).default_message
