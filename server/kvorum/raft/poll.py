"""The replica's own actions: it acts on timers that have run out, and sends what is due."""

from kvorum.raft.destination import Destination
from kvorum.raft.effects import AppendEpochStart
from kvorum.raft.election_record import EPOCH_MAX
from kvorum.raft.fetch_requests import answer_parked
from kvorum.raft.leader_contact import ContactEvent, LeaderContact
from kvorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from kvorum.raft.replica import Replica
from kvorum.raft.request_manager import NEVER
from kvorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kvorum.raft.voter_changes.steps import (
    RECONFIGURABLE_KRAFT_VERSION,
    change_deadline,
    poll_change,
)
from kvorum.raft.voter_changes.updates import is_reporter, report
from kvorum.raft.voter_set import VoterSet


def poll(replica: Replica, now: float) -> None:
    """Do everything that is due; afterwards nothing is due before `next_deadline`."""
    replica.peers.expire(now)
    answer_parked(replica, replica.parked.take_expired(now))
    poll_change(replica, now)
    is_settled = False
    while not is_settled:
        role = replica.role
        match role:
            case Unattached():
                _poll_unattached(replica, now, role)
            case Prospective():
                _poll_prospective(replica, now, role)
            case Candidate():
                _poll_candidate(replica, now, role)
            case Leader():
                _poll_leader(replica, now, role)
            case Resigned():
                _poll_resigned(replica, now, role)
            case Follower():
                _poll_follower(replica, now, role)
            case _:
                raise TypeError(f"{role} is no role")
        is_settled = replica.role is role
    poll_change(replica, now)


def next_deadline(replica: Replica) -> float:
    """Return when `poll` has to be called next."""
    role = replica.role
    deadline = role.deadline
    if isinstance(role, Leader) and len(replica.voters.others(role.own_key)) > 0:
        deadline = min(role.check_quorum_deadline, role.next_begin_quorum)
    if isinstance(role, Follower):
        deadline = min(deadline, _report_deadline(replica, role))
    return min(deadline, replica.peers.deadline, replica.parked.deadline, change_deadline(replica))


def _report_deadline(replica: Replica, role: Follower) -> float:
    """Return when to check for a report; a busy leader's response wakes the replica by itself."""
    is_free = not replica.is_installing and replica.peers.is_ready(role.following_id)
    return role.report_deadline if is_free and is_reporter(replica) else NEVER


def _poll_unattached(replica: Replica, now: float, role: Unattached) -> None:
    is_due = role.election_deadline <= now
    if not replica.may_stand:
        role.election_deadline = NEVER
    elif is_due and not replica.is_installing:
        replica.become_prospective(now)
        return
    elif is_due or role.election_deadline == NEVER:
        # A snapshot is being installed, or has just made this replica a voter.
        role.election_deadline = now + replica.random_election_timeout()
    if not replica.is_installing:
        _fetch_from_anyone(replica, now)


def _poll_prospective(replica: Replica, now: float, role: Prospective) -> None:
    lets_pass = role.lets_pass(now)
    if role.tally.is_granted and not lets_pass and may_campaign(replica):
        replica.become_candidate(now)
    elif role.tally.is_rejected or role.election_deadline <= now:
        replica.leave_prospective(now)
    else:
        _ask_for_votes(replica, now, role)


def may_campaign(replica: Replica) -> bool:
    """Return whether to begin an epoch: there must be one left, and the log's end be durable.

    A candidate's Vote requests contain its log's end. Votes granted because of records that are
    not durable would still count after a power cut has removed those records.
    """
    log = replica.log
    return replica.role.epoch <= EPOCH_MAX and log.durable_end_offset == log.end_offset


def _poll_candidate(replica: Replica, now: float, role: Candidate) -> None:
    if role.tally.is_granted:
        become_leader(replica, now, role)
    elif role.election_deadline <= now:
        replica.become_prospective(now)
    elif not role.tally.is_rejected:
        _ask_for_votes(replica, now, role)


def _ask_for_votes(replica: Replica, now: float, role: Prospective | Candidate) -> None:
    for voter_key in role.tally.unrecorded:
        request = VoteRequest(
            epoch=role.epoch,
            replica=replica.own.key,
            voter=voter_key,
            log_end=replica.log.end,
            is_pre_vote=isinstance(role, Prospective),
        )
        _send_if_ready(replica, now, replica.voter_destination(voter_key.id), request)


def become_leader(replica: Replica, now: float, candidate: Candidate) -> None:
    """Begin to lead: append the epoch's first batch before anything else can be appended."""
    leader = Leader(
        candidate.epoch,
        own_key=replica.own.key,
        own_endpoints=replica.own.endpoints,
        epoch_start_offset=replica.log.end_offset,
        granting_ids=tuple(key.id for key in candidate.tally.granted),
        check_quorum_deadline=now + replica.config.check_quorum_ms,
    )
    leader.next_begin_quorum = now
    replica.move(leader)
    voters = _voters_to_write(replica)
    version = replica.history.kraft_version
    if version < RECONFIGURABLE_KRAFT_VERSION:
        leader.volatile_voters = replica.voters.with_voter(replica.own.as_voter)
    voter_ids = replica.voters.ids
    base_offset = replica.log.append(epoch=leader.epoch, count=1 if voters is None else 3)
    if voters is not None:
        replica.history.add_kraft_version(base_offset + 1, version)
        replica.history.add_voters(base_offset + 2, voters)
    replica.outbox.add(
        AppendEpochStart(
            base_offset=base_offset,
            epoch=leader.epoch,
            leader_id=replica.own.key.id,
            voter_ids=voter_ids,
            granting_ids=leader.granting_ids,
            kraft_version=version,
            voters=voters,
        )
    )


def _voters_to_write(replica: Replica) -> VoterSet | None:
    """Return the voter set to append to the log, or None.

    From kraft.version 1 on, the new leader appends the set where only the bootstrap snapshot holds
    it, or where the set's entry of this replica is out of date.
    """
    history, own = replica.history, replica.own.as_voter
    if history.kraft_version < RECONFIGURABLE_KRAFT_VERSION:
        return None
    current = history.voters.voter_for(own.key)
    if current is not None and not current.says_same_as(own):
        return history.voters.with_voter(own)
    is_from_bootstrap = history.voters_offset is not None and history.voters_offset < 0
    return history.voters if is_from_bootstrap else None


def _poll_leader(replica: Replica, now: float, role: Leader) -> None:
    others = replica.voters.others(role.own_key)
    is_removed = replica.are_voters_committed and not replica.is_voter
    if is_removed or (others and role.check_quorum_deadline <= now):
        replica.become_resigned(now, is_shutdown=False)
        return
    if role.next_begin_quorum > now:
        return
    role.next_begin_quorum = now + replica.config.begin_quorum_ms
    for voter in others:
        last_fetch = role.progress_of(voter.key, replica.voters).last_fetch
        if last_fetch is not None and now - last_fetch < replica.config.begin_quorum_ms:
            continue
        request = BeginQuorumEpochRequest(
            epoch=role.epoch,
            leader_id=role.own_key.id,
            voter=voter.key,
            endpoints=role.leader_endpoints,
        )
        _send_if_ready(replica, now, replica.voter_destination(voter.key.id), request)


def _poll_resigned(replica: Replica, now: float, role: Resigned) -> None:
    if role.election_deadline <= now and role.epoch <= EPOCH_MAX:
        replica.become_unattached(now, role.epoch + 1)
        return
    if role.election_deadline <= now:
        # There is no epoch left to go on in.
        role.election_deadline = NEVER
    for voter_id in role.unacked_ids:
        request = EndQuorumEpochRequest(
            epoch=role.epoch, leader_id=replica.own.key.id, preferred=role.preferred, endpoints=()
        )
        _send_if_ready(replica, now, replica.voter_destination(voter_id), request)


def _poll_follower(replica: Replica, now: float, role: Follower) -> None:
    if replica.is_installing:
        role.fetch_deadline = max(role.fetch_deadline, now + replica.config.fetch_timeout_ms)
        return
    if role.fetch_deadline <= now:
        if replica.may_stand:
            replica.become_prospective(now)
            return
        # In the voters' log this replica may be a voter already, and they may need its pre-vote.
        role.note(ContactEvent.TIMED_OUT)
        role.fetch_deadline = NEVER
    if _report(replica, now, role):
        return
    log, download = replica.log, role.download
    if log.durable_end_offset < log.end_offset:
        # The position of a fetch would claim to the leader that these records are durable.
        return
    leader = replica.leader_destination()
    is_silent = role.contact is LeaderContact.SILENT
    if leader is None or is_silent or replica.peers.is_backing_off(leader.id):
        # This holds during a download too: its leader may be gone for good, and another one lead.
        _fetch_from_anyone(replica, now)
    elif download is None:
        _send_if_ready(replica, now, leader, _fetch_request(replica))
    elif not download.is_complete:
        _fetch_part(replica, now, role)


def _report(replica: Replica, now: float, role: Follower) -> bool:
    """Send the leader a report once a period; return whether it comes before fetching."""
    if role.report_deadline > now or not is_reporter(replica):
        return False
    request, leader = report(replica, role), replica.leader_destination()
    is_silent = role.contact is LeaderContact.SILENT
    is_lost = leader is None or is_silent or replica.peers.is_backing_off(leader.id)
    if request is None or leader is None or is_lost:
        role.report_deadline = now + replica.config.voter_update_ms
        return False
    if replica.peers.is_ready(leader.id):
        role.report_deadline = now + replica.config.voter_update_ms
        replica.send(now, leader, request)
    return True


def _fetch_part(replica: Replica, now: float, role: Follower) -> None:
    assert role.download is not None
    request = FetchSnapshotRequest(
        replica=replica.own.key,
        epoch=role.epoch,
        snapshot_id=role.download.snapshot_id,
        position=role.download.position,
        bytes_max=replica.config.fetch_snapshot_bytes_max,
    )
    _send_if_ready(replica, now, replica.leader_destination(), request)


def _fetch_from_anyone(replica: Replica, now: float) -> None:
    """Send a fetch to one of the configured servers, unless a request is under way already.

    The server that is asked may lead by then, and the fetch claims that all of the log is durable:
    so it is sent only once that is true.
    """
    if replica.peers.is_any_waiting or replica.log.durable_end_offset < replica.log.end_offset:
        return
    server = _whom_to_ask(replica)
    if server is not None:
        replica.send(now, server, _fetch_request(replica))


def _whom_to_ask(replica: Replica) -> Destination | None:
    """Choose a server that can be asked now.

    A request to a silent server costs a timeout, so a silent server has its turn only when all
    others were asked in vain; it may be the only one that knows the leader. The known leader does
    not count as silent: no other node can serve the fetch while it leads.
    """
    servers, peers, leader = replica.own.bootstrap, replica.peers, replica.leader_destination()
    silent = [
        server
        for silent_id in peers.silent_ids
        for server in servers
        if server.id == silent_id and not _is_same_place(server, leader)
    ]
    others = [server for server in servers if server not in silent]
    if all(peers.was_asked(server.id) for server in others):
        due = next((server for server in silent if peers.is_ready(server.id)), None)
        if due is not None:
            peers.begin_round()
            return due
    ready = [server for server in others if peers.is_ready(server.id)]
    return replica.random.choice(ready) if ready else None


def _is_same_place(one: Destination, other: Destination | None) -> bool:
    return other is not None and (one.host, one.port) == (other.host, other.port)


def _fetch_request(replica: Replica) -> FetchRequest:
    known = replica.high_watermark
    return FetchRequest(
        replica=replica.own.key,
        epoch=replica.role.epoch,
        position=replica.log.end,
        max_wait_ms=replica.config.fetch_wait_ms_max,
        bytes_max=replica.config.fetch_bytes_max,
        high_watermark=-1 if known is None else known,
    )


def _send_if_ready(
    replica: Replica, now: float, destination: Destination | None, request: Request
) -> None:
    if destination is not None and replica.peers.is_ready(destination.id):
        replica.send(now, destination, request)
