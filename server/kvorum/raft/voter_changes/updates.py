"""The report that a voter sends of itself to the leader, and the upgrade of kraft.version.

A voter reports the facts of itself that the leader lacks, at most once per period. A controller
that is not a voter asks to become one where auto-join is configured; before that it removes its
former directory's entry.

From kraft.version 1 on the leader appends the report as a record. Below, the leader keeps it in
memory, because an upgrade to version 1 needs it of every voter. Before either, the leader sends a
probe to the reported endpoint: an unreachable one would stall a later failover (KAFKA-20661). The
steps: check that the voters may change; ask the voter which kraft.versions it can work at; compare
them with the reported ones; append the record; respond without waiting for the commit.

At kraft.version 0 the voters are those of ``controller.quorum.voters``: they are known by their
ids, and do not change. At 1 they are records of the log, each with its directory id, endpoints and
versions: votes name the directory too, quorum-state has another form, and voters can be added,
removed, updated and reassigned (KIP-853). There is no way back. For the upgrade every voter must
have reported its directory id to the leader of this epoch, and that it can work at the new version.
Then the leader appends one batch with version and voters.
"""

from kvorum.raft.effects import SendResponse
from kvorum.raft.endpoints import endpoint_named
from kvorum.raft.errors import IllegalMoveError, KRaftVersionUpgradeError
from kvorum.raft.fetch_requests import leader_error, note_contact
from kvorum.raft.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsResponse,
    Error,
    LeaderAwareResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    Request,
    RequestFailed,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kvorum.raft.replica import PendingUpdate, Replica
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Follower, Leader
from kvorum.raft.voter import Voter
from kvorum.raft.voter_changes.steps import (
    RECONFIGURABLE_KRAFT_VERSION,
    append_kraft_version,
    append_voters,
    end_change,
    probe_error,
    probed_versions,
    refuse_while_changing,
    send_probe,
)
from kvorum.raft.voter_set import VoterSet

_PARTS_OF_A_PERIOD = 4

_SETTLED = frozenset({Error.NONE, Error.REQUEST_TIMED_OUT})
"""The answers after which the change is done, or may still be."""


def upgrade_kraft_version(
    replica: Replica, now: float, *, epoch: int, kraft_version: int, validate_only: bool
) -> bool:
    """Append the new version, or only check the upgrade; return False where it is in force.

    Raises KRaftVersionUpgradeError and NotLeaderError, both with Kafka's text.
    """
    leader = replica.leader_in(epoch, action="Upgrade kraft version")
    current = replica.history.kraft_version
    if kraft_version == current:
        return False
    if kraft_version < current:
        raise KRaftVersionUpgradeError(
            f"Invalid upgrade of kraft.version from version {current} to {kraft_version} because "
            "the new version is a downgrade"
        )
    voters = _voters_that_support(leader, current=current, wanted=kraft_version)
    if voters.ids != replica.voters.ids:
        raise IllegalMoveError(f"the voters {replica.voters.ids} are known as {voters.ids}")
    if not validate_only:
        append_kraft_version(replica, leader, now, kraft_version=kraft_version, voters=voters)
        leader.volatile_voters = None
    return True


def _voters_that_support(leader: Leader, *, current: int, wanted: int) -> VoterSet:
    voters = leader.volatile_voters
    if voters is None:
        raise KRaftVersionUpgradeError(
            f"Invalid upgrade of kraft.version from version {current} to {wanted}"
        )
    for voter in voters.voters:
        is_known = voter.key.directory_id is not None
        if not is_known or not voter.kraft_version_min <= wanted <= voter.kraft_version_max:
            raise KRaftVersionUpgradeError(
                f"Invalid upgrade of kraft.version to {wanted} because not all of the voters "
                "support it"
            )
    return voters


def handle_update_voter_request(
    replica: Replica, now: float, *, token: int, request: UpdateRaftVoterRequest
) -> None:
    """Refuse a voter's update, or probe the voter before the update is recorded."""
    error = _request_error(replica, request) or _begin(replica, now, token=token, request=request)
    if error is not Error.NONE:
        answer = UpdateRaftVoterResponse(error=error, leader=replica.known_leader())
        replica.outbox.add(SendResponse(token, answer))


def _request_error(replica: Replica, request: UpdateRaftVoterRequest) -> Error:
    if not request.is_for_this_cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    error = leader_error(replica, request.epoch)
    if error is not Error.NONE:
        return error
    has_directory = request.voter is not None and request.voter.directory_id is not None
    endpoint = endpoint_named(request.endpoints, replica.own.listener_name)
    is_range = 0 <= request.kraft_version_min <= request.kraft_version_max
    is_valid = has_directory and endpoint is not None and is_range
    return Error.NONE if is_valid else Error.INVALID_REQUEST


def _begin(replica: Replica, now: float, *, token: int, request: UpdateRaftVoterRequest) -> Error:
    leader, key = replica.role, request.voter
    endpoint = endpoint_named(request.endpoints, replica.own.listener_name)
    assert isinstance(leader, Leader)
    assert key is not None
    assert endpoint is not None
    if refuse_while_changing(replica, now) is not None:
        return Error.REQUEST_TIMED_OUT
    updated = _updated_voters(replica, leader, key=key, request=request)
    if isinstance(updated, Error):
        return updated
    note_contact(replica, now, leader=leader, key=key)
    if not send_probe(replica, now, key=key, endpoint=endpoint):
        return Error.REQUEST_TIMED_OUT
    replica.change = PendingUpdate(
        token=token, key=key, request=request, deadline=now + replica.config.voter_probe_ms
    )
    return Error.NONE


def continue_updating_voter(
    replica: Replica, now: float, *, node_id: int, response: ApiVersionsResponse | RequestFailed
) -> str | None:
    """Record an update that the probe confirms; return how the voter failed, if it did."""
    leader, change = replica.role, replica.change
    if not isinstance(leader, Leader) or not isinstance(change, PendingUpdate):
        return None
    if change.key.id != node_id:
        return None
    error_name = probe_error(response)
    if error_name is not None:
        end_change(replica, Error.REQUEST_TIMED_OUT)
        return f"the endpoint that a voter reported fails with {error_name}"
    end_change(replica, _update(replica, leader, now, change, probed_versions(response)))
    return None


def _update(
    replica: Replica,
    leader: Leader,
    now: float,
    change: PendingUpdate,
    versions: tuple[int, int] | None,
) -> Error:
    request = change.request
    if versions != (request.kraft_version_min, request.kraft_version_max):
        return Error.INVALID_REQUEST
    # The kraft.version may have risen since the voter was asked.
    updated = _updated_voters(replica, leader, key=change.key, request=request)
    if isinstance(updated, Error):
        return updated
    if replica.history.kraft_version >= RECONFIGURABLE_KRAFT_VERSION:
        append_voters(replica, leader, now, updated)
    else:
        leader.volatile_voters = updated
    return Error.NONE


def _updated_voters(
    replica: Replica, leader: Leader, *, key: ReplicaKey, request: UpdateRaftVoterRequest
) -> VoterSet | Error:
    """Return the voters with one voter's update, or the error that refuses it."""
    voters = _voters_to_update(replica, leader)
    if voters is None:
        return Error.REQUEST_TIMED_OUT
    level = replica.history.kraft_version
    lowest, highest = request.kraft_version_min, request.kraft_version_max
    if not lowest <= level <= highest:
        return Error.INVALID_REQUEST
    is_recorded = level >= RECONFIGURABLE_KRAFT_VERSION
    known = voters.voter_for(key) if is_recorded else voters.by_id(key.id)
    if known is None:
        return Error.VOTER_NOT_FOUND
    return voters.with_voter(Voter(key, request.endpoints, lowest, highest))


def _voters_to_update(replica: Replica, leader: Leader) -> VoterSet | None:
    if replica.history.kraft_version < RECONFIGURABLE_KRAFT_VERSION:
        return leader.volatile_voters
    return replica.voters if replica.are_voters_committed else None


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
        return _own_update(replica, role, is_recorded=is_recorded)
    return _join(replica) if is_recorded and _joins(replica) else None


def _own_update(replica: Replica, role: Follower, *, is_recorded: bool) -> Request | None:
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


def is_settled(response: AddRaftVoterResponse | RemoveRaftVoterResponse) -> bool:
    """Return whether to wait a period after this response, rather than treat it as a failure."""
    already = (
        Error.DUPLICATE_VOTER
        if isinstance(response, AddRaftVoterResponse)
        else Error.VOTER_NOT_FOUND
    )
    return response.error in _SETTLED or response.error is already
