"""The role that a replica takes after a restart."""

from kvorum.raft.basics import ElectionRecord, ReplicaKey
from kvorum.raft.replica import Replica
from kvorum.raft.request_manager import NEVER
from kvorum.raft.roles import Candidate, Follower, Resigned, Role, Unattached


def initial_role(replica: Replica, now: float, stored: ElectionRecord | None) -> Role:
    """Return the role that the stored record leads to, with the promises in it kept.

    A record with an epoch below the log's last epoch is out of date; the replica then begins in
    the log's last epoch. A former leader does not lead again in its epoch: records that it had
    appended may be lost.
    """
    record = stored or ElectionRecord(0)
    timeout_ms = replica.random_election_timeout()
    deadline = now + timeout_ms if replica.may_stand else NEVER
    if record.epoch < replica.log.last_epoch:
        return Unattached(replica.log.last_epoch, election_deadline=deadline)
    if record.leader_id == replica.own.key.id:
        # An observer needs the deadline too: no node is obliged to send it the new leader.
        return _resigned(replica, record, deadline=now + timeout_ms)
    has_own_vote = record.voted is not None and _is_own(replica, record.voted)
    if has_own_vote and record.leader_id is None and replica.may_stand:
        return Candidate(
            record.epoch,
            own_key=replica.own.key,
            tally=replica.own_tally(),
            election_deadline=deadline,
        )
    endpoints = () if record.leader_id is None else replica.voters.endpoints_of(record.leader_id)
    if record.leader_id is not None and endpoints:
        return Follower(
            record.epoch,
            leader_id=record.leader_id,
            leader_endpoints=endpoints,
            fetch_deadline=now + replica.config.fetch_timeout_ms,
            report_deadline=now + replica.config.voter_update_ms,
            voted=record.voted,
        )
    return Unattached(
        record.epoch, election_deadline=deadline, leader_id=record.leader_id, voted=record.voted
    )


def _is_own(replica: Replica, key: ReplicaKey) -> bool:
    """Return whether a stored key is this replica's; at kraft.version 0 it has no directory id."""
    own = replica.own.key
    return key.id == own.id and key.directory_id in {None, own.directory_id}


def _resigned(replica: Replica, record: ElectionRecord, *, deadline: float) -> Role:
    unacked = frozenset(voter.key.id for voter in replica.voters.others(replica.own.key))
    return Resigned(
        record.epoch,
        own_key=replica.own.key,
        preferred=(),
        unacked_ids=unacked,
        election_deadline=deadline,
        voted=record.voted,
    )
