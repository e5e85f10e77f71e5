"""The consensus core: one replica of one log as a few synchronous verbs that return effects.

The driver keeps to this:

1. It calls one verb at a time, each with `now`, milliseconds of a clock that never goes back.
2. It does the effects in order (see `effects`), and all of one verb before those of the next.
3. After appending it makes the log durable, in its own time, and reports it with `log_durable`.
4. It calls `tick` when `next_deadline` is reached.
5. It hands back a response, or a failure, for every `Send`; what comes too late is ignored.

Nothing that a peer sends makes a verb raise. IllegalMoveError means that an invariant is broken,
and the replica must stop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvorum.raft.config import RaftConfig
from kvorum.raft.effects import AppendProposal, Effects, SendResponse, ShutdownComplete
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.election_requests import (
    handle_begin_quorum_epoch_request,
    handle_end_quorum_epoch_request,
    handle_vote_request,
)
from kvorum.raft.fetch_requests import (
    answer_parked,
    fail_parked,
    handle_describe_quorum_request,
    handle_fetch_request,
    handle_fetch_snapshot_request,
    update_high_watermark,
)
from kvorum.raft.log_view import LogView
from kvorum.raft.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    Request,
    RequestFailed,
    Response,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from kvorum.raft.metrics import RaftMetrics, metrics_of
from kvorum.raft.poll import next_deadline, poll
from kvorum.raft.replica import Identity, PendingUpdate, Replica
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.request_manager import NEVER
from kvorum.raft.responses import handle_response, update_follower_high_watermark
from kvorum.raft.roles import Candidate, Follower, Leader, Resigned, Role, Unattached
from kvorum.raft.voter_changes.additions import (
    handle_add_voter_request,
    handle_remove_voter_request,
)
from kvorum.raft.voter_changes.updates import handle_update_voter_request, upgrade_kraft_version
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

if TYPE_CHECKING:
    from random import Random


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
    return Resigned(
        record.epoch,
        own_key=replica.own.key,
        preferred=(),
        unacked_ids=frozenset(voter.key.id for voter in replica.voters.others(replica.own.key)),
        election_deadline=deadline,
        voted=record.voted,
    )


class RaftCore:
    """One replica. It takes over `log` and `history`, which describe what its directory holds."""

    def __init__(
        self,
        identity: Identity,
        *,
        config: RaftConfig,
        log: LogView,
        history: VoterSetHistory,
        random: Random,
    ) -> None:
        self._replica = Replica(identity, config=config, log=log, history=history, random=random)
        self._has_said_shutdown_is_complete = False

    @property
    def role(self) -> Role:
        """The role the replica is in; to be looked at, not changed."""
        return self._replica.role

    @property
    def log(self) -> LogView:
        """The core's view of the log; to be looked at, not changed."""
        return self._replica.log

    @property
    def history(self) -> VoterSetHistory:
        """The voters and kraft.version through the log; to be looked at, not changed."""
        return self._replica.history

    @property
    def high_watermark(self) -> int | None:
        """The offset below which everything is committed; None until that is known."""
        return self._replica.high_watermark

    @property
    def is_voter(self) -> bool:
        """Whether the replica takes part in elections; if not, it is an observer."""
        return self._replica.is_voter

    @property
    def may_stand(self) -> bool:
        """Whether the replica may be elected: as a voter, or while its removal may yet fail."""
        return self._replica.may_stand

    @property
    def may_change_voters(self) -> bool:
        """Whether this replica leads, and a change of the voters could begin now."""
        replica = self._replica
        is_leader = isinstance(replica.role, Leader)
        # An update that is not recorded yet gives way.
        is_free = replica.change is None or isinstance(replica.change, PendingUpdate)
        return is_leader and is_free and replica.are_voters_committed

    @property
    def are_voters_committed(self) -> bool:
        """Whether the latest voters in the log are committed, as far as this replica knows."""
        return self._replica.are_voters_committed

    def describe_quorum(self, now: float) -> DescribeQuorumResponse:
        """Return how far every replica is; an error where this replica does not lead."""
        return handle_describe_quorum_request(self._replica, now)

    def metrics(self, now: float) -> RaftMetrics:
        """Return the replica's metrics as of `now`."""
        return metrics_of(self._replica, now)

    @property
    def next_deadline(self) -> float:
        """When `tick` has to be called at the latest; infinite if it need not be."""
        return next_deadline(self._replica)

    def start(self, now: float, *, stored: ElectionRecord | None) -> Effects:
        """Take the role that the stored record leaves; a lone voter begins to lead at once."""
        replica = self._replica
        replica.begin_as(initial_role(replica, now, stored), stored=stored)
        if replica.is_only_voter and not isinstance(replica.role, Candidate):
            replica.become_prospective(now)
        return self._finish(now)

    def tick(self, now: float) -> Effects:
        """Do what is due."""
        return self._finish(now)

    def receive(self, now: float, *, token: int, request: Request) -> Effects:
        """Handle a request; its response comes, now or later, as a SendResponse with `token`."""
        replica = self._replica
        match request:
            case FetchRequest():
                handle_fetch_request(replica, now, token, request)
            case AddRaftVoterRequest():
                handle_add_voter_request(replica, now, token=token, request=request)
            case RemoveRaftVoterRequest():
                handle_remove_voter_request(replica, now, token=token, request=request)
            case UpdateRaftVoterRequest():
                handle_update_voter_request(replica, now, token=token, request=request)
            case _:
                replica.outbox.add(SendResponse(token, _answer(replica, now, request)))
        return self._finish(now)

    def forget(self, token: int) -> None:
        """Note that a request's client has gone and needs no response."""
        self._replica.parked.forget(token)

    def receive_response(
        self, now: float, *, number: int, response: Response | RequestFailed
    ) -> Effects:
        """Handle the response to the Send of that number, or its failure."""
        handle_response(self._replica, now, number, response)
        return self._finish(now)

    def propose(self, now: float, *, epoch: int, count: int) -> tuple[int, Effects]:
        """Append `count` records as one batch; return the offset of the first one.

        Raises NotLeaderError unless the replica leads in `epoch`.
        """
        replica = self._replica
        replica.leader_in(epoch, action="Append")
        base_offset = replica.log.append(epoch=epoch, count=count)
        replica.outbox.add(AppendProposal(base_offset, epoch, count))
        answer_parked(replica, replica.parked.take_reached_by(replica.log.end_offset))
        return base_offset, self._finish(now)

    def upgrade_kraft_version(
        self, now: float, *, epoch: int, kraft_version: int, validate_only: bool
    ) -> tuple[bool, Effects]:
        """Append a new kraft.version; with `validate_only` only check whether that is possible.

        Returns False where the version is in force already. Otherwise it is in force as soon as
        the appended batch is committed. Raises KRaftVersionUpgradeError and NotLeaderError.
        """
        is_new = upgrade_kraft_version(
            self._replica,
            now,
            epoch=epoch,
            kraft_version=kraft_version,
            validate_only=validate_only,
        )
        return is_new, self._finish(now)

    def log_durable(self, now: float, end_offset: int) -> Effects:
        """Note that the log would survive a power cut below `end_offset`."""
        if self._replica.log.became_durable(end_offset):
            update_high_watermark(self._replica)
            update_follower_high_watermark(self._replica)
        return self._finish(now)

    def log_truncated(self, now: float, end_offset: int) -> Effects:
        """Note that a truncation removed more than was asked for."""
        self._replica.log.truncate_to(end_offset)
        self._replica.history.truncate_to(end_offset)
        return self._finish(now)

    def snapshot_installed(
        self,
        now: float,
        snapshot_id: OffsetAndEpoch,
        *,
        voters: VoterSet | None,
        kraft_version: int,
    ) -> Effects:
        """Note that a fetched snapshot is durable and that the log continues after it."""
        replica = self._replica
        replica.log.replace_by_snapshot(snapshot_id)
        replica.history.start_from_snapshot(snapshot_id, voters=voters, kraft_version=kraft_version)
        replica.raise_high_watermark(snapshot_id.offset)
        self._end_download(snapshot_id)
        return self._finish(now)

    def snapshot_refused(self, now: float, snapshot_id: OffsetAndEpoch) -> Effects:
        """Note that a fetched snapshot failed its check and was dropped."""
        self._end_download(snapshot_id)
        role = self._replica.role
        destination = self._replica.leader_destination()
        if isinstance(role, Follower) and destination is not None:
            self._replica.peers.back_off(now, destination.id)
        return self._finish(now)

    def _end_download(self, snapshot_id: OffsetAndEpoch) -> None:
        role = self._replica.role
        self._replica.is_installing = False
        if not isinstance(role, Follower) or role.download is None:
            return
        if role.download.snapshot_id == snapshot_id:
            role.download = None

    def snapshot_created(self, snapshot_id: OffsetAndEpoch) -> None:
        """Note a snapshot that the driver has written from its own state."""
        self._replica.log.add_snapshot(snapshot_id)

    def log_start_moved(self, start_offset: int, snapshots: Iterable[OffsetAndEpoch]) -> None:
        """Note that old records and snapshots were removed; `snapshots` are the remaining ones."""
        self._replica.log.start_moved(start_offset, snapshots)

    def stood_still(self, duration_ms: float) -> None:
        """Note that the process did not run for `duration_ms` and could not hear its leader.

        The fetch timeout becomes longer by that time, except where the leader is known to be gone.
        """
        role = self._replica.role
        if isinstance(role, Follower) and not role.is_leader_gone:
            role.fetch_deadline += duration_ms

    def resign(self, now: float, *, epoch: int) -> Effects:
        """Give up the leadership of `epoch`, if the replica still has it."""
        role = self._replica.role
        if isinstance(role, Leader) and role.epoch == epoch:
            self._replica.become_resigned(now, is_shutdown=False)
        return self._finish(now)

    def shutdown(self, now: float) -> Effects:
        """Hand over to others; ShutdownComplete comes when there is nothing left to wait for."""
        replica = self._replica
        replica.is_shutting_down = True
        role = replica.role
        if isinstance(role, Leader) and replica.voters.others(role.own_key):
            replica.become_resigned(now, is_shutdown=True)
        return self._finish(now)

    def _finish(self, now: float) -> Effects:
        """Do what has become due, and return all collected effects."""
        replica = self._replica
        poll(replica, now)
        if not isinstance(replica.role, Leader):
            fail_parked(replica)
        is_handing_over = isinstance(replica.role, Resigned)
        if (
            replica.is_shutting_down
            and not is_handing_over
            and not self._has_said_shutdown_is_complete
        ):
            self._has_said_shutdown_is_complete = True
            replica.outbox.add(ShutdownComplete())
        return replica.outbox.take()


def _answer(replica: Replica, now: float, request: Request) -> Response:
    """Return the response to a request that never waits."""
    match request:
        case VoteRequest():
            return handle_vote_request(replica, now, request)
        case BeginQuorumEpochRequest():
            return handle_begin_quorum_epoch_request(replica, now, request)
        case EndQuorumEpochRequest():
            return handle_end_quorum_epoch_request(replica, now, request)
        case FetchSnapshotRequest():
            return handle_fetch_snapshot_request(replica, now, request)
        case DescribeQuorumRequest():
            return handle_describe_quorum_request(replica, now)
        case _:
            raise TypeError(f"{request} is not for a replica")
