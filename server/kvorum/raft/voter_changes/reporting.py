"""What a follower tells its leader about itself, a period after the other.

A voter tells what the leader does not know of it yet. A controller that is no voter asks to become
one, where it is configured to join by itself; the entry of its own former directory goes first.
"""

from __future__ import annotations

from kvorum.raft.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Error,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    Request,
    UpdateRaftVoterRequest,
)
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Follower
from kvorum.raft.voter_changes.checks import RECONFIGURABLE_KRAFT_VERSION


def is_reporter(replica: Replica) -> bool:
    """Tell whether there may ever be something to tell the leader."""
    return replica.is_voter or _joins(replica)


def _joins(replica: Replica) -> bool:
    """Tell whether this replica joins the voters by itself.

    Who was removed from them stays away until it is started anew: a setting from before must not
    undo what somebody has decided since.
    """
    return replica.config.auto_join and replica.own.can_vote and not replica.has_been_voter


def report(replica: Replica, role: Follower) -> Request | None:
    """Return what to tell the leader, if there is something."""
    if replica.is_shutting_down:
        return None
    is_recorded = replica.history.kraft_version >= RECONFIGURABLE_KRAFT_VERSION
    if replica.is_voter:
        return _update(replica, role, is_recorded=is_recorded)
    return _join(replica) if is_recorded and _joins(replica) else None


def _update(replica: Replica, role: Follower, *, is_recorded: bool) -> Request | None:
    own = replica.own.as_voter
    entry = replica.voters.by_id(own.key.id)
    # Where nobody writes it down, each leader has to be told.
    is_known = role.has_updated_leader
    if is_recorded:
        is_known = entry is None or entry.says_same_as(own)
    if is_known:
        return None
    return UpdateRaftVoterRequest(
        epoch=role.epoch,
        voter=own.key,
        endpoints=own.endpoints,
        kraft_version_min=own.kraft_version_min,
        kraft_version_max=own.kraft_version_max,
    )


def _join(replica: Replica) -> Request:
    former = replica.voters.by_id(replica.own.key.id)
    if former is not None:
        return RemoveRaftVoterRequest(former.key)
    return AddRaftVoterRequest(replica.own.key, replica.own.endpoints, acks_when_committed=False)


_SETTLED = frozenset({Error.NONE, Error.REQUEST_TIMED_OUT})


def is_settled(response: AddRaftVoterResponse | RemoveRaftVoterResponse) -> bool:
    """Tell whether to wait out a period after this answer, rather than take it for a failure."""
    already = (
        Error.DUPLICATE_VOTER
        if isinstance(response, AddRaftVoterResponse)
        else Error.VOTER_NOT_FOUND
    )
    return response.error in _SETTLED or response.error is already
