"""The outcomes that the model allows for one node and one event, given what was seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.model.exploration import elections, reconfiguration, replication
from tests.model.exploration import observing as seen
from tests.model.exploration.design import CORRECT
from tests.model.exploration.observing import number_of
from tests.model.exploration.state import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    NOBODY,
    PROSPECTIVE,
    RESIGNED,
    UNATTACHED,
    Entry,
    Log,
    Node,
    Request,
    bit,
    is_majority,
    may_stand,
    replica_of,
    voters_of,
)

from kvorum.raft import messages as msg
from kvorum.raft.effects import AppendFetched, Effects, Send

if TYPE_CHECKING:
    from tests.model.exploration.replay import Replay

VOTER_REQUESTS = (msg.AddRaftVoterRequest, msg.RemoveRaftVoterRequest, msg.UpdateRaftVoterRequest)


def internal(replay: Replay, own: int, node: Node, after: Node) -> Iterator[Node]:
    """Yield what a node may become of itself: by its timers, and by elections it has won."""
    voters = replay.voters(node)
    is_candidate = may_stand(CORRECT, own, node, replay.first_voters)
    is_alone = voters == bit(replica_of(own, node))
    waits = {UNATTACHED, FOLLOWER, CANDIDATE, *([RESIGNED] if is_alone else [])}
    if is_candidate and node.role in waits:
        yield elections.prospective(CORRECT, own, node)
    if node.role == PROSPECTIVE:
        yield elections.given_up(CORRECT, own, node)
        if is_majority(node.tally, voters) and elections.may_stand(CORRECT, node):
            yield elections.candidate(CORRECT, own, node)
    if node.role == CANDIDATE and is_majority(node.tally, voters):
        yield from _leading(replay, own, node, after)
    if node.role == LEADER:
        yield elections.moved(node, RESIGNED, epoch=node.epoch, leader=own)
    if node.role == RESIGNED:
        yield elections.moved(node, UNATTACHED, epoch=node.epoch + 1)


def _leading(replay: Replay, own: int, node: Node, after: Node) -> Iterator[Node]:
    """Yield a new leader, whose first batch may also hold kraft.version and the voters."""
    progress = replication.no_progress(replay.node_count)
    leader = elections.moved(node, LEADER, epoch=node.epoch, leader=own)
    for count in (1, 3):
        added = after.log[node.end : node.end + count]
        is_own = all(entry.epoch == node.epoch for entry in added)
        keeps_voters = not any(entry.voters for entry in added)
        if len(added) == count and is_own and keeps_voters:
            yield leader._replace(log=node.log + added, progress=progress)


def happened(
    replay: Replay, own: int, node: Node, event: seen.Event, after: Node
) -> Iterator[Node]:
    """Yield what a node may become by what its own process tells it."""
    match event:
        case seen.Proposed():
            yield from _written(replay, node, event.record_count, after)
        case seen.Synced():
            synced = node._replace(durable=max(node.durable, min(event.end_offset, node.end)))
            yield replication.with_promise(counted(replay, own, synced), synced.promised)
            yield synced._replace(promised=0)
        case seen.Truncated():
            end = event.end_offset
            yield node._replace(log=node.log[:end], durable=min(node.durable, end))
        case seen.Installed():
            content = replay.committed[: event.snapshot_id.offset]
            if len(content) == event.snapshot_id.offset:
                yield replication.installed(CORRECT, node, content)
        case seen.StartMoved():
            yield node._replace(start=after.start)
        case _:
            yield node


def _written(replay: Replay, node: Node, count: int, after: Node) -> Iterator[Node]:
    """Yield a leader with records proposed to it; a kraft.version is two, with the voters."""
    if node.role != LEADER:
        return
    added = after.log[node.end : node.end + (count or 2)]
    if all(entry.epoch == node.epoch and not entry.voters for entry in added):
        yield node._replace(log=node.log + added)
    if not count:
        yield node


def counted(replay: Replay, own: int, node: Node) -> Node:
    """Return a node that, if it leads, has counted again how far a majority is."""
    return replication.counted(CORRECT, own, node, first_voters=replay.first_voters)


def asked(
    replay: Replay,
    own: int,
    node: Node,
    request: msg.Request,
    answer: msg.Response | None,
    after: Node,
) -> Iterator[Node]:
    """Yield what a node may become by a request; its answer must fit, where there is one yet."""
    match request:
        case msg.VoteRequest():
            assert isinstance(answer, msg.VoteResponse)
            yield from _asked_for_vote(replay, own, node, request, answer)
        case msg.BeginQuorumEpochRequest() | msg.EndQuorumEpochRequest():
            assert isinstance(answer, msg.BeginQuorumEpochResponse | msg.EndQuorumEpochResponse)
            if answer.error in {msg.Error.NONE, msg.Error.INVALID_VOTER_KEY}:
                leader = number_of(request.leader_id)
                yield from learned(own, node, epoch=request.epoch, leader=leader)
            else:
                yield node
        case msg.FetchRequest():
            assert answer is None or isinstance(answer, msg.FetchResponse)
            yield from _asked_to_fetch(replay, own, node, request, answer)
        case _ if isinstance(request, VOTER_REQUESTS):
            yield node
            yield from _changed_voters(replay, own, node, after)
        case _:
            yield node


def _asked_for_vote(
    replay: Replay, own: int, node: Node, request: msg.VoteRequest, answer: msg.VoteResponse
) -> Iterator[Node]:
    replica, voter = replica_of(own, node), request.voter
    is_meant = voter is None or voter.directory_id is None or replay.replica(voter) == replica
    is_observer = not replay.voters(node) & bit(replica)
    if is_observer and request.epoch > node.epoch and not answer.is_granted:
        # It has no vote to give, and so no need of the epoch.
        yield node
    if answer.error is msg.Error.INVALID_VOTER_KEY and request.epoch > node.epoch:
        yield elections.moved(node, UNATTACHED, epoch=request.epoch)
    elif answer.error is not msg.Error.NONE:
        yield node
    elif is_meant:
        kind = "pre-vote" if request.is_pre_vote else "vote"
        sender = replay.replica(request.replica)
        end = request.log_end
        wanted = Request(kind, sender, replica, request.epoch, end.offset, end.epoch)
        following, is_granted = elections.voted(CORRECT, own, node, wanted)
        if is_granted == answer.is_granted:
            yield following


def _asked_to_fetch(
    replay: Replay,
    own: int,
    node: Node,
    request: msg.FetchRequest,
    answer: msg.FetchResponse | None,
) -> Iterator[Node]:
    """Yield the node after a fetch: a leader notes how far a replica is that may go on."""
    if answer is not None and answer.error is not msg.Error.NONE:
        # By this very fetch its own removal may have been committed, and it leads no more.
        yield node
        if node.role != LEADER or answer.error is not msg.Error.NOT_LEADER_OR_FOLLOWER:
            return
        answer = None
    sender = replay.replica(request.replica)
    position = request.position
    wanted = Request("fetch", sender, own, request.epoch, position.offset, position.epoch)
    verdict = replication.judged(CORRECT, node, wanted)
    is_leader = node.role == LEADER and node.epoch == request.epoch
    if not is_leader:
        return
    if answer is not None and answer.snapshot_id is not None:
        snapshot_id = answer.snapshot_id
        if replay.committed[snapshot_id.offset - 1].epoch == snapshot_id.epoch:
            yield node
    elif answer is not None and answer.diverging is not None:
        if verdict == ("diverging", answer.diverging.offset, answer.diverging.epoch):
            yield node
    elif verdict[0] == "records":
        if sender != NOBODY:
            node = replication.with_progress(node, sender, position.offset)
        # An observer's fetch is no occasion to count, though a voter just removed may make one due.
        is_voter = sender != NOBODY and replay.voters(node) & bit(sender)
        yield counted(replay, own, node) if is_voter else node


def _changed_voters(replay: Replay, own: int, node: Node, after: Node) -> Iterator[Node]:
    """Yield a leader that has appended a voter record, if it may."""
    added = after.log[node.end : node.end + 1]
    if not added or not reconfiguration.may_change(CORRECT, node):
        return
    voters = replay.voters(node)
    replicas = replay.directories.replicas()
    # A record may also say something new of voters that stay who they are.
    allowed = {0, *reconfiguration.changes(CORRECT, voters, replicas=replicas)}
    if added[0].epoch == node.epoch and added[0].voters in allowed:
        yield node._replace(log=node.log + added)


def learned(own: int, node: Node, *, epoch: int, leader: int) -> Iterator[Node]:
    """Yield what becomes of a node that hears of a leader.

    One that only lacked the leader's address follows it now.
    """
    yield elections.learned(own, node, epoch=epoch, leader=leader)
    is_known = epoch == node.epoch and node.leader == leader and leader not in {NOBODY, own}
    if is_known and node.role in {UNATTACHED, PROSPECTIVE}:
        yield elections.moved(node, FOLLOWER, epoch=epoch, leader=leader)


def heard(
    replay: Replay,
    own: int,
    node: Node,
    response: msg.Response | msg.RequestFailed,
    send: Send | None,
    effects: Effects,
    after: Node,
) -> Iterator[Node]:
    """Yield what a node may become by a response; it may count as lost."""
    yield node
    if send is None:
        return
    if isinstance(response, msg.RequestFailed):
        may_stand = node.role == PROSPECTIVE and elections.may_stand(CORRECT, node)
        if response.lacks_version and may_stand:
            yield elections.candidate(CORRECT, own, node)
        return
    if isinstance(response, msg.ApiVersionsResponse):
        yield from _changed_voters(replay, own, node, after)
        return
    if isinstance(response, msg.AddRaftVoterResponse | msg.RemoveRaftVoterResponse):
        return
    leader = number_of(response.leader.leader_id)
    for following in learned(own, node, epoch=response.leader.epoch, leader=leader):
        yield following
        if following.epoch == node.epoch == response.leader.epoch and not response.error:
            yield from _took_content(replay, own, following, response, send, effects)


def _took_content(
    replay: Replay, own: int, node: Node, response: msg.Response, send: Send, effects: Effects
) -> Iterator[Node]:
    if isinstance(response, msg.VoteResponse) and response.is_granted:
        assert isinstance(send.request, msg.VoteRequest)
        voter, is_real = replay.replica(send.request.voter), not send.request.is_pre_vote
        if node.role == CANDIDATE and is_real:
            replay.note_vote(node.epoch, voter=voter, candidate=replica_of(own, node))
        if node.role == (CANDIDATE if is_real else PROSPECTIVE):
            yield node._replace(tally=node.tally | bit(voter))
    elif isinstance(response, msg.FetchResponse) and node.role == FOLLOWER:
        yield from _took_fetched(replay, node, response, effects)


def _took_fetched(
    replay: Replay, node: Node, response: msg.FetchResponse, effects: Effects
) -> Iterator[Node]:
    if response.diverging is not None:
        end = response.diverging
        yield replication.truncated(CORRECT, node, offset=end.offset, epoch=end.epoch)
        return
    everything = (*effects.at_once, *effects.after_write)
    count = sum(one.batch_count for one in everything if isinstance(one, AppendFetched))
    entries = _entries(replay, node, response.batches[:count])
    if entries is not None:
        watermark = response.high_watermark or 0
        yield replication.appended(CORRECT, node, entries=entries, watermark=watermark, syncs=False)


def _entries(replay: Replay, node: Node, batches: tuple[msg.BatchSummary, ...]) -> Log | None:
    """Return the records of batches; None where they do not continue a node's log."""
    entries: list[Entry] = []
    for batch in batches:
        if batch.base_offset != node.end + len(entries) or batch.epoch > node.epoch:
            return None
        sets = {offset: replay.directories.voters(voters) for offset, voters in batch.voters}
        for offset in range(batch.base_offset, batch.last_offset + 1):
            voters = sets.get(offset, 0)
            is_change = voters not in {0, voters_of((*node.log, *entries), replay.first_voters)}
            entry = replay.records.entry(batch.epoch, offset, voters=voters if is_change else 0)
            entries.append(entry)
    return tuple(entries)
