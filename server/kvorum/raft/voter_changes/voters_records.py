"""The records of a new voter set in the log, and their effect on the leader."""

from kvorum.raft.effects import AppendVoters
from kvorum.raft.errors import IllegalMoveError
from kvorum.raft.fetch_requests import answer_parked
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.voter_set import VoterSet


def append_voters(replica: Replica, leader: Leader, now: float, voters: VoterSet) -> int:
    """Append a record with the new voters, which count from now on; return its offset.

    Raises IllegalMoveError where a majority of the old voters need not overlap one of the new.
    """
    old = replica.voters
    if not old.overlaps_safely(voters):
        raise IllegalMoveError(f"the voters {old.ids} cannot become {voters.ids} in one step")
    offset = replica.log.append(epoch=leader.epoch, count=1)
    _begin_with(replica, leader, now, offset=offset, voters=voters)
    replica.outbox.add(AppendVoters(offset, leader.epoch, voters))
    answer_parked(replica, replica.parked.take_reached_by(replica.log.end_offset))
    return offset


def append_kraft_version(
    replica: Replica, leader: Leader, now: float, *, kraft_version: int, voters: VoterSet
) -> None:
    """Append one batch with a kraft.version and its first voter set."""
    base_offset = replica.log.append(epoch=leader.epoch, count=2)
    replica.history.add_kraft_version(base_offset, kraft_version)
    _begin_with(replica, leader, now, offset=base_offset + 1, voters=voters)
    replica.outbox.add(AppendVoters(base_offset, leader.epoch, voters, kraft_version))
    answer_parked(replica, replica.parked.take_reached_by(replica.log.end_offset))


def _begin_with(
    replica: Replica, leader: Leader, now: float, *, offset: int, voters: VoterSet
) -> None:
    old = replica.voters
    replica.history.add_voters(offset, voters)
    leader.voters_changed(old, voters)
    if not old.others(leader.own_key):
        # Until now this leader was the only voter and had no deadline to keep.
        leader.check_quorum_deadline = now + replica.config.check_quorum_ms
