"""The end of a change of the voters: committed, out of time, given up, or with its leader."""

from kvorum.raft.effects import SendResponse
from kvorum.raft.messages import (
    AddRaftVoterResponse,
    Error,
    RemoveRaftVoterResponse,
    UpdateRaftVoterResponse,
)
from kvorum.raft.replica import Replica
from kvorum.raft.request_manager import NEVER
from kvorum.raft.roles import Leader
from kvorum.raft.voter_change_state import PendingUpdate, RemoveVoterHandlerState
from kvorum.wire.error_codes import ErrorCode


def poll_change(replica: Replica, now: float) -> None:
    """End the change under way if it is committed, out of time, or the leadership is lost."""
    change = replica.change
    if change is None:
        return
    offset = None if isinstance(change, PendingUpdate) else change.record_offset
    known = replica.high_watermark
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
    """Send the response of the change under way, and allow the next change.

    The record of a change that is out of time stays in the log, and may be committed later.
    """
    answer_change(replica, error, message)
    replica.change = None


def answer_change(replica: Replica, error: Error, message: str | None = None) -> None:
    """Send the outcome of the change under way to its client, unless that is done already."""
    change = replica.change
    text = _default_message(error) if message is None else message
    if isinstance(change, RemoveVoterHandlerState):
        replica.outbox.add(SendResponse(change.token, RemoveRaftVoterResponse(error, text)))
    elif isinstance(change, PendingUpdate):
        answer = UpdateRaftVoterResponse(error, replica.known_leader())
        replica.outbox.add(SendResponse(change.token, answer))
    elif change is not None and not change.is_answered:
        change.is_answered = True
        replica.outbox.add(SendResponse(change.token, AddRaftVoterResponse(error, text)))


def _default_message(error: Error) -> str | None:
    return None if error is Error.NONE else ErrorCode(error).default_message
