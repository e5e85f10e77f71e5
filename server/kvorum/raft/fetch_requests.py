"""Handlers of the requests that a leader answers: Fetch, FetchSnapshot, DescribeQuorum."""

from kvorum.raft.effects import LeadershipGained, SendResponse
from kvorum.raft.fetch_purgatory import DelayedFetch
from kvorum.raft.messages import (
    DescribeQuorumResponse,
    Error,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ReplicaProgress,
)
from kvorum.raft.replica import Replica
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Leader, Progress
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID
from kvorum.wire.valid_offset_and_epoch import ValidityKind


def handle_fetch_request(replica: Replica, now: float, token: int, request: FetchRequest) -> None:
    """Answer a fetch, or park it where it finds nothing new."""
    response = try_complete_fetch_request(replica, request)
    role = replica.role
    is_valid = response.read_from is not None and isinstance(role, Leader)
    if not is_valid:
        replica.outbox.add(SendResponse(token, response))
        return
    assert isinstance(role, Leader)
    if request.replica is not None:
        _note_fetch(replica, now, leader=role, key=request.replica, request=request)
    if request.max_wait_ms == 0 or _has_news(replica, request):
        # This fetch itself may have moved the high watermark.
        replica.outbox.add(SendResponse(token, try_complete_fetch_request(replica, request)))
    else:
        replica.parked.park(token, request, deadline=now + request.max_wait_ms)


def _has_news(replica: Replica, request: FetchRequest) -> bool:
    """Return whether there are records or a high watermark new to the fetcher (KIP-1166)."""
    if request.position.offset < replica.log.end_offset:
        return True
    known = replica.high_watermark
    return (
        request.high_watermark is not None
        and known is not None
        and (request.high_watermark < known)
    )


def try_complete_fetch_request(replica: Replica, request: FetchRequest) -> FetchResponse:
    """Return the response to a fetch as of now."""
    error = _fetch_error(replica, request)
    if error is not Error.NONE:
        return _fetch_failure(replica, error)
    log = replica.log
    snapshot_id = log.latest_loadable_snapshot
    verdict, position = ValidityKind.SNAPSHOT, request.position
    if request.position.offset > 0 or snapshot_id is None:
        verdict, position = log.judge(request.position)
        if verdict is ValidityKind.SNAPSHOT:
            snapshot_id = position
    is_valid = verdict is ValidityKind.VALID
    return FetchResponse(
        error=Error.NONE,
        leader=replica.known_leader(),
        high_watermark=replica.high_watermark,
        log_start_offset=log.start_offset,
        diverging=position if verdict is ValidityKind.DIVERGING else None,
        snapshot_id=snapshot_id if verdict is ValidityKind.SNAPSHOT else None,
        read_from=position.offset if is_valid else None,
        bytes_max=request.bytes_max,
    )


def _fetch_error(replica: Replica, request: FetchRequest) -> Error:
    position = request.position
    if request.max_wait_ms < 0 or position.offset < 0 or not 0 <= position.epoch <= request.epoch:
        return Error.INVALID_REQUEST
    error = leader_error(replica, request.epoch)
    is_own = request.replica is not None and request.replica.id == replica.own.key.id
    return Error.UNKNOWN_SERVER_ERROR if error is Error.NONE and is_own else error


def leader_error(replica: Replica, epoch: int) -> Error:
    """Return why a request to the leader of `epoch` cannot be answered here."""
    if epoch < replica.role.epoch:
        return Error.FENCED_LEADER_EPOCH
    if epoch > replica.role.epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return Error.NOT_LEADER_OR_FOLLOWER
    return Error.BROKER_NOT_AVAILABLE if replica.is_shutting_down else Error.NONE


def _note_fetch(
    replica: Replica, now: float, *, leader: Leader, key: ReplicaKey, request: FetchRequest
) -> None:
    """Record how far a replica is, from the position of its fetch."""
    leader.progress_of(key, replica.voters).fetched(
        now, offset=request.position.offset, leader_end_offset=replica.log.end_offset
    )
    note_contact(replica, now, leader=leader, key=key)
    if replica.voters.is_voter(key):
        update_high_watermark(replica)


def note_contact(replica: Replica, now: float, *, leader: Leader, key: ReplicaKey) -> None:
    """Put off the leader's resignation once a majority has been heard from."""
    voters = replica.voters
    if not voters.is_voter(key):
        return
    needed = voters.majority - (1 if voters.is_voter(leader.own_key) else 0)
    if leader.heard_from(key.id, needed=needed):
        leader.check_quorum_deadline = now + replica.config.check_quorum_ms


def update_high_watermark(replica: Replica) -> None:
    """Raise the high watermark to the majority's durable end; then answer the parked fetches."""
    leader = replica.role
    if not isinstance(leader, Leader):
        return
    offset = leader.advanced_high_watermark(
        replica.voters,
        current=replica.high_watermark,
        durable_end_offset=replica.log.durable_end_offset,
    )
    if offset is None or not replica.raise_high_watermark(offset):
        return
    if not leader.is_established:
        leader.is_established = True
        replica.outbox.add(LeadershipGained(leader.epoch))
    answer_parked(replica, replica.parked.take_all())


def answer_parked(replica: Replica, fetches: list[DelayedFetch]) -> None:
    """Answer fetches that have been parked, as of now."""
    for fetch in fetches:
        replica.outbox.add(
            SendResponse(fetch.token, try_complete_fetch_request(replica, fetch.request))
        )


def fail_parked(replica: Replica) -> None:
    """Answer all parked fetches with an error, since this replica does not lead any more."""
    for fetch in replica.parked.take_all():
        replica.outbox.add(
            SendResponse(fetch.token, _fetch_failure(replica, Error.NOT_LEADER_OR_FOLLOWER))
        )


def _fetch_failure(replica: Replica, error: Error) -> FetchResponse:
    return FetchResponse(
        error=error, leader=replica.known_leader(), log_start_offset=replica.log.start_offset
    )


def handle_fetch_snapshot_request(
    replica: Replica, now: float, request: FetchSnapshotRequest
) -> FetchSnapshotResponse:
    """Return the response for a part of a snapshot; the driver reads the bytes into it."""
    error = leader_error(replica, request.epoch)
    known = request.snapshot_id in replica.log.snapshots
    if error is Error.NONE and (not known or request.snapshot_id == BOOTSTRAP_SNAPSHOT_ID):
        error = Error.SNAPSHOT_NOT_FOUND
    if error is Error.NONE and request.position < 0:
        error = Error.POSITION_OUT_OF_RANGE
    leader = replica.role
    if error is Error.NONE and isinstance(leader, Leader) and request.replica is not None:
        note_contact(replica, now, leader=leader, key=request.replica)
    return FetchSnapshotResponse(
        error=error,
        leader=replica.known_leader(),
        snapshot_id=request.snapshot_id,
        position=request.position,
        bytes_max=request.bytes_max,
    )


def handle_describe_quorum_request(replica: Replica, now: float) -> DescribeQuorumResponse:
    """Return how far every replica is."""
    leader = replica.role
    if not isinstance(leader, Leader):
        return DescribeQuorumResponse(
            error=Error.NOT_LEADER_OR_FOLLOWER, leader=replica.known_leader()
        )
    voter_keys = [voter.key for voter in replica.voters.voters]
    leader.forget_silent(now, keep=voter_keys, session_ms=replica.config.observer_session_ms)
    observers = sorted(
        (key for key in leader.progress if key not in voter_keys), key=lambda key: key.id
    )
    if not replica.voters.is_voter(leader.own_key):
        observers.append(leader.own_key)
    return DescribeQuorumResponse(
        error=Error.NONE,
        leader=replica.known_leader(),
        high_watermark=replica.high_watermark,
        voters=tuple(_describe(replica, now, leader=leader, key=key) for key in voter_keys),
        observers=tuple(_describe(replica, now, leader=leader, key=key) for key in observers),
        voter_endpoints=replica.voters,
    )


def _describe(replica: Replica, now: float, *, leader: Leader, key: ReplicaKey) -> ReplicaProgress:
    if key.id == leader.own_key.id:
        return ReplicaProgress(
            key=key,
            log_end_offset=replica.log.end_offset,
            last_fetch_age_ms=0,
            last_caught_up_age_ms=0,
        )
    known = leader.progress.get(key, Progress())
    return ReplicaProgress(
        key=key,
        log_end_offset=known.log_end_offset,
        last_fetch_age_ms=None if known.last_fetch is None else now - known.last_fetch,
        last_caught_up_age_ms=None if known.last_caught_up is None else now - known.last_caught_up,
    )
