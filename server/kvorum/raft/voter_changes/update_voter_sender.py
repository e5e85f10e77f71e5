"""The reports that a follower sends to its leader, at most one per period.

A voter reports the facts of itself that the leader lacks. A controller that is not a voter asks to
become one where auto-join is configured; before that it removes its former directory's entry.
"""

from kvorum.raft.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Error,
    LeaderAwareResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    Request,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Follower
from kvorum.raft.voter_changes.checks import RECONFIGURABLE_KRAFT_VERSION

_PARTS_OF_A_PERIOD = 4


def is_reporter(replica: Replica) -> bool:
    """Return whether this replica may ever have something to report to the leader."""
    return replica.is_voter or _joins(replica)


def _joins(replica: Replica) -> bool:
    """Return whether this replica joins the voters by itself.

    A replica that was removed from the voters stays out until its next start: auto-join must not
    undo an operator's later decision.
    """
    return replica.config.auto_join and replica.own.can_vote and not replica.has_been_voter


def report(replica: Replica, role: Follower) -> Request | None:
    """Return the request to send to the leader, if there is something to report."""
    if replica.is_shutting_down:
        return None
    is_recorded = replica.history.kraft_version >= RECONFIGURABLE_KRAFT_VERSION
    if replica.is_voter:
        return _update(replica, role, is_recorded=is_recorded)
    return _join(replica) if is_recorded and _joins(replica) else None


def _update(replica: Replica, role: Follower, *, is_recorded: bool) -> Request | None:
    own = replica.own.as_voter
    entry = replica.voters.by_id(own.key.id)
    # At kraft.version 0 nothing is recorded, so every new leader needs the report.
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


def report_sooner_if_busy(replica: Replica, now: float, response: LeaderAwareResponse) -> None:
    """Try again within a part of the period where the leader was busy with another voter.

    All voters hear of a new leader at the same moment, so their periods end together, and the
    leader probes one of them at a time. A refusal that came late has another cause: the leader did
    not reach this replica.
    """
    role, period_ms = replica.role, replica.config.voter_update_ms
    is_busy = isinstance(response, UpdateRaftVoterResponse) and (
        response.error is Error.REQUEST_TIMED_OUT
    )
    if not is_busy or not isinstance(role, Follower):
        return
    sooner_ms = period_ms // _PARTS_OF_A_PERIOD
    sent = role.report_deadline - period_ms
    if now - sent < sooner_ms:
        role.report_deadline = now + sooner_ms * replica.random.random()


def _join(replica: Replica) -> Request:
    former = replica.voters.by_id(replica.own.key.id)
    if former is not None:
        return RemoveRaftVoterRequest(former.key)
    return AddRaftVoterRequest(replica.own.key, replica.own.endpoints, acks_when_committed=False)


_SETTLED = frozenset({Error.NONE, Error.REQUEST_TIMED_OUT})


def is_settled(response: AddRaftVoterResponse | RemoveRaftVoterResponse) -> bool:
    """Return whether to wait a period after this response, rather than treat it as a failure."""
    already = (
        Error.DUPLICATE_VOTER
        if isinstance(response, AddRaftVoterResponse)
        else Error.VOTER_NOT_FOUND
    )
    return response.error in _SETTLED or response.error is already
