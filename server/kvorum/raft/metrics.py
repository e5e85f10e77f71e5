"""The metrics of a replica at one moment, under the names of Kafka's raft-metrics.

KIP-853 names some metrics that Kafka never built; they have the names of the KIP.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kvorum.raft.replica import AddVoterHandlerState, RemoveVoterHandlerState, Replica
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Leader, Prospective, Role, RoleName, Unattached
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMetrics:
    """The figures that only a leader has: of others, and of a change of the voters under way."""

    observer_count: int
    offline_voter_count: int
    duplicate_voter_id_count: int
    is_adding: bool
    is_removing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftMetrics:
    """One replica's figures; `UNKNOWN` without a value.

    `leader` holds the figures that only a leader has, None where the replica does not lead.
    `is_observer` is set for controllers only: brokers are never voters.
    `is_static_set_ignored` is set where voters are configured and the log holds a voter set, which
    takes precedence.
    """

    state: str
    leader_id: int
    voted_id: int
    voted_directory_id: str
    epoch: int
    high_watermark: int
    log_end_offset: int
    log_end_epoch: int
    voter_count: int
    unreachable_voter_count: int
    is_observer: bool
    is_static_set_ignored: bool
    leader: LeaderMetrics | None

    def named(self) -> Mapping[str, int | str]:
        """Return the figures by Kafka's names, without those that only a leader has."""
        named: dict[str, int | str] = {
            "current-state": self.state,
            "current-leader": self.leader_id,
            "current-vote": self.voted_id,
            "current-vote-directory-id": self.voted_directory_id,
            "current-epoch": self.epoch,
            "high-watermark": self.high_watermark,
            "log-end-offset": self.log_end_offset,
            "log-end-epoch": self.log_end_epoch,
            "number-unknown-voter-connections": self.unreachable_voter_count,
            "number-of-voters": self.voter_count,
            "is-observer": int(self.is_observer),
            "ignored-static-voters": int(self.is_static_set_ignored),
        }
        if self.leader is not None:
            named["number-of-observers"] = self.leader.observer_count
            named["number-of-offline-voters"] = self.leader.offline_voter_count
            named["duplicate-voter-ids"] = self.leader.duplicate_voter_id_count
            named["pending-add-voter"] = int(self.leader.is_adding)
            named["pending-remove-voter"] = int(self.leader.is_removing)
            named["uncommitted-voter-change"] = int(
                self.leader.is_adding or self.leader.is_removing
            )
        return named


def metrics_of(replica: Replica, now: float) -> RaftMetrics:
    """Return a replica's metrics as of `now`."""
    role = replica.role
    voted_id, voted_directory = _vote(replica)
    known = replica.high_watermark
    return RaftMetrics(
        state=_state(replica, role),
        leader_id=UNKNOWN if role.leader_id is None else role.leader_id,
        voted_id=voted_id,
        voted_directory_id=uuid_to_text(voted_directory),
        epoch=role.epoch,
        high_watermark=UNKNOWN if known is None else known,
        log_end_offset=replica.log.end_offset,
        log_end_epoch=replica.log.last_epoch,
        voter_count=len(replica.voters.ids),
        unreachable_voter_count=sum(
            replica.voter_destination(voter_id) is None for voter_id in replica.voters.ids
        ),
        is_observer=replica.own.can_vote and not replica.is_voter,
        is_static_set_ignored=bool(replica.history.static.voters)
        and replica.history.voters_offset is not None,
        leader=_of_leader(replica, role, now) if isinstance(role, Leader) else None,
    )


def _of_leader(replica: Replica, leader: Leader, now: float) -> LeaderMetrics:
    observers = {key for key in leader.progress if not replica.voters.is_voter(key)}
    if not replica.is_voter:
        observers.add(leader.own_key)
    # A voter set holds an id once, so another replica of a voter's id is a node that was started
    # under it with another directory, and fetches as an observer.
    duplicate_ids = {key.id for key in observers}.intersection(replica.voters.ids)
    return LeaderMetrics(
        observer_count=len(observers),
        offline_voter_count=sum(
            not _is_online(replica, leader, voter.key, now)
            for voter in replica.voters.others(leader.own_key)
        ),
        duplicate_voter_id_count=len(duplicate_ids),
        is_adding=isinstance(replica.change, AddVoterHandlerState),
        is_removing=isinstance(replica.change, RemoveVoterHandlerState),
    )


def _is_online(replica: Replica, leader: Leader, key: ReplicaKey, now: float) -> bool:
    """Return whether a voter has fetched within the fetch timeout."""
    known = leader.progress.get(key)
    if known is None or known.last_fetch is None:
        return False
    return now - known.last_fetch <= replica.config.fetch_timeout_ms


def _vote(replica: Replica) -> tuple[int, bytes]:
    """Return id and directory that got the vote; candidates and leaders voted for themselves."""
    role, key = replica.role, replica.role.voted
    if role.name in {RoleName.CANDIDATE, RoleName.LEADER}:
        key = replica.own.key
    if key is None:
        return UNKNOWN, ZERO_UUID
    return key.id, key.directory_id or ZERO_UUID


def _state(replica: Replica, role: Role) -> str:
    if role.name is RoleName.FOLLOWER:
        return "follower" if replica.is_voter else "observer"
    if role.name is RoleName.RESIGNED:
        # Kafka reports a resigned leader as unattached.
        return RoleName.UNATTACHED.value
    has_voted = role.voted is not None
    may_have_voted = isinstance(role, Prospective | Unattached)
    return f"{role.name.value}-voted" if may_have_voted and has_voted else role.name.value
