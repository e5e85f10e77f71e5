"""Handlers of the responses to this replica's own requests."""

from kvorum.raft.destination import Destination
from kvorum.raft.effects import (
    AppendDownload,
    AppendFetched,
    BeginDownload,
    DropDownload,
    InstallDownload,
    TruncateLog,
)
from kvorum.raft.election_requests import learn_leader, succession_wait_ms
from kvorum.raft.leader_contact import ContactEvent, LeaderContact
from kvorum.raft.log_view import LogView
from kvorum.raft.messages import (
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BatchSummary,
    EndQuorumEpochResponse,
    Error,
    FetchResponse,
    FetchSnapshotResponse,
    LeaderAwareResponse,
    RemoveRaftVoterResponse,
    Request,
    RequestFailed,
    Response,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from kvorum.raft.poll import may_campaign
from kvorum.raft.replica import Replica
from kvorum.raft.request_manager import Sent
from kvorum.raft.roles import Candidate, Download, Follower, Prospective, Resigned
from kvorum.raft.voter_changes.additions import continue_adding_voter
from kvorum.raft.voter_changes.updates import (
    continue_updating_voter,
    is_settled,
    report_sooner_if_busy,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


def handle_response(
    replica: Replica, now: float, number: int, response: Response | RequestFailed
) -> None:
    """Handle a response, unless its request has been given up."""
    is_failure = isinstance(response, RequestFailed)
    sent = replica.peers.answered(now, number, is_failure=is_failure)
    if sent is None:
        return
    if isinstance(response, RequestFailed | ApiVersionsResponse) and isinstance(
        sent.request, ApiVersionsRequest
    ):
        node_id = sent.destination.id
        problem = continue_adding_voter(
            replica, now, node_id=node_id, response=response
        ) or continue_updating_voter(replica, now, node_id=node_id, response=response)
        if problem is not None:
            replica.refuse(now, sent.destination, problem)
    elif isinstance(response, RequestFailed):
        _handle_failure(replica, now, sent, response)
    elif isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
        if not is_settled(response):
            replica.refuse(now, sent.destination, _problem_with(replica, response))
    elif not isinstance(response, ApiVersionsResponse):
        _handle_leader_aware(replica, now, number, sent, response)


def _problem_with(replica: Replica, response: Response) -> str:
    """Return a response's error in words."""
    assert not isinstance(response, ApiVersionsResponse)
    problem = f"{type(response).__name__} with error {response.error.name}"
    if (
        isinstance(response, LeaderAwareResponse)
        and response.leader.leader_id == replica.own.key.id
    ):
        return f"{problem}: it names a leader with the id of this node, {replica.own.key.id}"
    return problem


def _handle_leader_aware(
    replica: Replica, now: float, number: int, sent: Sent, response: LeaderAwareResponse
) -> None:
    epoch_before = replica.role.epoch
    is_news = learn_leader(replica, now, response.leader)
    if replica.role.epoch != epoch_before:
        return
    if isinstance(response, FetchSnapshotResponse) and _is_snapshot_gone(response):
        _restart_fetching(replica, now)
    elif not _is_good(response) or response.leader.epoch != epoch_before:
        if not is_news:
            if _has_resigned(replica, sent.destination, response):
                _note_peer_gone(replica, now, sent.destination)
            replica.refuse(now, sent.destination, _problem_with(replica, response))
            report_sooner_if_busy(replica, now, response)
    else:
        _handle_content(replica, now, number, sent, response)


def _is_good(response: LeaderAwareResponse) -> bool:
    """Return whether the content of a response can be used."""
    if isinstance(response, UpdateRaftVoterResponse):
        # A leader that does not support the request has no use for it: the report is done.
        return response.error in {Error.NONE, Error.UNSUPPORTED_VERSION}
    return response.error is Error.NONE


def _handle_failure(replica: Replica, now: float, sent: Sent, failure: RequestFailed) -> None:
    is_pre_vote = isinstance(sent.request, VoteRequest) and sent.request.is_pre_vote
    role = replica.role
    is_nominee = isinstance(role, Prospective) and may_campaign(replica)
    if failure.lacks_version and is_pre_vote and is_nominee:
        # A voter from before pre-votes can only be asked in a real election.
        replica.become_candidate(now)
        return
    is_update = isinstance(sent.request, UpdateRaftVoterRequest)
    if failure.lacks_version and is_update and isinstance(role, Follower):
        role.has_updated_leader = True
        return
    if failure.is_peer_gone and replica.is_voter:
        _note_peer_gone(replica, now, sent.destination)
    replica.refuse(now, sent.destination, failure.reason)


def _has_resigned(replica: Replica, peer: Destination, response: LeaderAwareResponse) -> bool:
    """Return whether the leader itself answers that it does not lead the epoch, as after a restart.

    A leader that resigns while it runs answers its followers' fetches in the same way, and also
    sends them the order of its successors. So the answer counts as the leader's end only at a
    follower that has heard nothing else from it.
    """
    role = replica.role
    return (
        isinstance(role, Follower)
        and replica.is_voter
        and peer.id == role.leader_id
        and response.error is Error.NOT_LEADER_OR_FOLLOWER
        and response.leader.epoch == role.epoch
        and role.contact is LeaderContact.UNHEARD
    )


def _note_peer_gone(replica: Replica, now: float, peer: Destination) -> None:
    """Prepare to replace a leader whose process has ended, without waiting for its silence.

    A mistake here disturbs no other voter: pre-votes come first, and a voter that hears from the
    leader refuses them.
    """
    role = replica.role
    if not isinstance(role, Follower) or peer.id != role.leader_id or role.is_leader_gone:
        return
    wait_ms = succession_wait_ms(replica, role)
    role.note(ContactEvent.ENDED)
    role.fetch_deadline = min(role.fetch_deadline, now + wait_ms)


def _handle_content(
    replica: Replica, now: float, number: int, sent: Sent, response: LeaderAwareResponse
) -> None:
    role = replica.role
    match response:
        case VoteResponse() if isinstance(role, Prospective | Candidate):
            _take_vote(sent.request, response, role)
        case EndQuorumEpochResponse() if isinstance(role, Resigned):
            role.acknowledged(sent.destination.id)
        case FetchResponse() if isinstance(role, Follower):
            problem = _take_fetched(replica, role, number, response)
            _note_leader_lives(replica, now, role)
            if problem is not None:
                replica.refuse(now, sent.destination, problem)
        case FetchSnapshotResponse() if isinstance(role, Follower):
            problem = _take_part(replica, role, number, response)
            _note_leader_lives(replica, now, role)
            if problem is not None:
                replica.refuse(now, sent.destination, problem)
        case UpdateRaftVoterResponse() if isinstance(role, Follower):
            role.has_updated_leader = True
            _note_leader_lives(replica, now, role)
        case FetchResponse() | FetchSnapshotResponse():
            # The response is without error, as only a leader's is, but names no leader to follow.
            replica.refuse(now, sent.destination, "a fetch was answered without a known leader")
        case _:
            pass


def _take_vote(request: Request, response: VoteResponse, role: Prospective | Candidate) -> None:
    """Count a vote as that of the voter key in the request; another replica would refuse it."""
    if isinstance(request, VoteRequest) and request.voter is not None:
        role.tally.record(request.voter, is_granted=response.is_granted)


def _note_leader_lives(replica: Replica, now: float, role: Follower) -> None:
    role.note(ContactEvent.ANSWERED)
    role.fetch_deadline = now + replica.config.fetch_timeout_ms


def _take_fetched(
    replica: Replica, role: Follower, number: int, response: FetchResponse
) -> str | None:
    """Truncate, begin a download, or append; return what is wrong with the response, if any."""
    if role.download is not None:
        return None
    if response.diverging is not None:
        return _truncate(replica, response.diverging)
    if response.snapshot_id is not None:
        return _begin_download(replica, role, response.snapshot_id)
    count = _append(replica, role, response.batches)
    if count:
        replica.outbox.add(AppendFetched(number, count))
    if response.high_watermark is not None:
        role.leader_high_watermark = response.high_watermark
    update_follower_high_watermark(replica)
    return None if count == len(response.batches) else "a batch does not continue the log"


def update_follower_high_watermark(replica: Replica) -> None:
    """Raise the high watermark to the leader's, as far as this replica's log is durable."""
    role = replica.role
    if isinstance(role, Follower) and role.leader_high_watermark is not None:
        replica.raise_high_watermark(
            min(role.leader_high_watermark, replica.log.durable_end_offset)
        )


def _truncate(replica: Replica, diverging: OffsetAndEpoch) -> str | None:
    offset = truncation_offset(replica.log, diverging)
    if replica.high_watermark is not None and offset < replica.high_watermark:
        return f"truncation to {offset}, below the high watermark {replica.high_watermark}"
    if offset < replica.log.start_offset:
        return f"truncation to {offset}, below the log's start"
    replica.log.truncate_to(offset)
    replica.history.truncate_to(offset)
    replica.outbox.add(TruncateLog(offset))
    return None


def truncation_offset(log: LogView, diverging: OffsetAndEpoch) -> int:
    """Return where to truncate a log that diverges from the leader's.

    `diverging` is the end of an epoch in the leader's log; the two logs agree at most up to there.
    """
    if diverging.epoch == 0:
        return min(diverging.offset, log.end_offset)
    own = log.end_offset_for(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(diverging.offset, own.offset)
    return own.offset


def _append(replica: Replica, role: Follower, batches: tuple[BatchSummary, ...]) -> int:
    """Note the batches that continue the log; return how many they are."""
    log, history = replica.log, replica.history
    for index, batch in enumerate(batches):
        count = batch.last_offset - batch.base_offset + 1
        continues = batch.base_offset == log.end_offset and count > 0
        if not continues or not log.last_epoch <= batch.epoch <= role.epoch:
            return index
        log.append(epoch=batch.epoch, count=count)
        for offset, version in batch.kraft_versions:
            history.add_kraft_version(offset, version)
        for offset, voters in batch.voters:
            history.add_voters(offset, voters)
    return len(batches)


def _begin_download(replica: Replica, role: Follower, snapshot_id: OffsetAndEpoch) -> str | None:
    if min(snapshot_id.offset, snapshot_id.epoch) < 0 or snapshot_id.epoch > role.epoch:
        return f"the snapshot {snapshot_id} cannot exist"
    if replica.high_watermark is not None and snapshot_id.offset < replica.high_watermark:
        return f"the snapshot {snapshot_id} ends below the high watermark"
    if snapshot_id in replica.log.snapshots:
        return f"the snapshot {snapshot_id} is here already"
    role.download = Download(snapshot_id)
    replica.outbox.add(BeginDownload(snapshot_id))
    return None


def _take_part(
    replica: Replica, role: Follower, number: int, response: FetchSnapshotResponse
) -> str | None:
    """Keep a part of a snapshot; return what is wrong with it, if anything."""
    download = role.download
    if download is None or download.is_complete:
        return None
    expected = (download.snapshot_id, download.position)
    end = response.position + response.part_size
    if (response.snapshot_id, response.position) != expected or not (
        response.position < end <= response.size
    ):
        role.download = None
        replica.outbox.add(DropDownload())
        return f"not the part of the snapshot that was asked for: {response}"
    download.position = end
    replica.outbox.add(AppendDownload(number))
    if end == response.size:
        download.is_complete = True
        replica.is_installing = True
        replica.outbox.add(InstallDownload(download.snapshot_id))
    return None


def _is_snapshot_gone(response: FetchSnapshotResponse) -> bool:
    if response.error is Error.SNAPSHOT_NOT_FOUND:
        return True
    snapshot_id = response.snapshot_id
    return response.error is Error.NONE and min(snapshot_id.offset, snapshot_id.epoch) < 0


def _restart_fetching(replica: Replica, now: float) -> None:
    """Go back to fetching records, since the leader has replaced its snapshot."""
    role = replica.role
    if isinstance(role, Follower) and role.download is not None and not role.download.is_complete:
        role.download = None
        replica.outbox.add(DropDownload())
        _note_leader_lives(replica, now, role)
