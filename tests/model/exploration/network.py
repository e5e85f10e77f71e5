"""Messages: what a node may ask now, what it is answered, and what it makes of the answer.

Each function looks at one node only, as a process does. A node awaits one reply of each other node
at a time, and none any more once it has moved (see `actions.without_stale_replies`).
"""

from collections.abc import Iterator

from tests.model.exploration import elections, replication
from tests.model.exploration.design import Bounds, Design
from tests.model.exploration.state import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    PROSPECTIVE,
    RESIGNED,
    UNATTACHED,
    Message,
    Node,
    Reply,
    Request,
    State,
    bit,
    members,
    node_of,
    replica_of,
    voters_of,
)

KINDS_OF_ROLE = {
    PROSPECTIVE: {"pre-vote"},
    CANDIDATE: {"vote"},
    LEADER: {"begin"},
    RESIGNED: {"end"},
    FOLLOWER: {"fetch", "snapshot"},
    UNATTACHED: {"fetch"},
}


def requests(design: Design, state: State, own: int) -> Iterator[Request]:
    """Yield what a node may ask of others, while it awaits nothing from them."""
    for request in _all_requests(design, state, own):
        is_waiting = any(_is_between(message, request) for message in state.network)
        if not is_waiting or design.believes_stale_replies:
            yield request


def _is_between(message: Message, request: Request) -> bool:
    if isinstance(message, Reply):
        return (message.receiver, message.sender) == (request.sender, request.receiver)
    is_same_way = (message.sender, message.receiver) == (request.sender, request.receiver)
    return is_same_way and message.is_awaited


def _all_requests(design: Design, state: State, own: int) -> Iterator[Request]:
    node = state.nodes[own]
    replica, voters = replica_of(own, node), voters_of(node.log, state.first_voters)
    if node.role in {PROSPECTIVE, CANDIDATE}:
        kind = "pre-vote" if node.role == PROSPECTIVE else "vote"
        for voter in _others(voters & ~node.tally, own):
            yield Request(kind, replica, voter, node.epoch, node.end, node.last_epoch)
    elif node.role in {LEADER, RESIGNED}:
        kind = "begin" if node.role == LEADER else "end"
        for voter in _others(voters, own):
            yield Request(kind, replica, voter, node.epoch)
    elif node.download:
        yield Request("snapshot", replica, node.leader, node.epoch, node.download)
    elif node.durable == node.end or design.fetches_before_flush:
        asked = [node.leader] if node.role == FOLLOWER else range(len(state.nodes))
        for other in asked:
            if other != own:
                yield Request("fetch", replica, other, node.epoch, node.end, node.last_epoch)


def _others(replicas: int, own: int) -> list[int]:
    """Return the replicas in a mask that are on other nodes."""
    return [replica for replica in members(replicas) if node_of(replica) != own]


def answered(design: Design, state: State, request: Request) -> tuple[Node, Reply]:
    """Return the receiver of a request after it, and its reply."""
    own, node = _receiver(state, request)
    match request.kind:
        case "pre-vote" | "vote":
            node, verdict = _answer_vote(design, state, request)
            return node, _reply(node, request, verdict)
        case "begin" | "end":
            leader = node_of(request.sender)
            node = elections.learned(own, node, epoch=request.epoch, leader=leader)
            return node, _reply(node, request, "done")
        case "snapshot":
            content = replication.part(node, request) if request.epoch == node.epoch else None
            if content is None:
                return node, _reply(node, request, "gone")
            return node, _reply(node, request, "part")._replace(entries=content)
        case _:
            return _answer_fetch(design, state, request)


def _receiver(state: State, request: Request) -> tuple[int, Node]:
    own = node_of(request.receiver)
    return own, state.nodes[own]


def _answer_vote(design: Design, state: State, request: Request) -> tuple[Node, str]:
    own, node = _receiver(state, request)
    replica = replica_of(own, node)
    if request.receiver != replica and not design.grants_by_id:
        return elections.refused(node, request), "refused"
    is_observer = not voters_of(node.log, state.first_voters) & bit(replica)
    if design.observers_refuse_votes and is_observer:
        return node, "refused"
    after, is_granted = elections.voted(design, own, node, request)
    if is_observer and not is_granted and request.epoch > node.epoch:
        # It has no vote to give, and so no need of the epoch.
        return node, "refused"
    return after, "granted" if is_granted else "refused"


def _answer_fetch(design: Design, state: State, request: Request) -> tuple[Node, Reply]:
    own, node = _receiver(state, request)
    if request.epoch != node.epoch or node.role != LEADER:
        return node, _reply(node, request, "error")
    verdict, offset, epoch = replication.judged(design, node, request)
    if verdict == "records":
        node = replication.with_progress(node, request.sender, offset)
        node = replication.counted(design, own, node, first_voters=state.first_voters)
    reply = _reply(node, request, verdict)._replace(
        offset=offset, last_epoch=epoch, watermark=node.watermark
    )
    return node, reply._replace(entries=node.log[offset:] if verdict == "records" else ())


def _reply(node: Node, request: Request, verdict: str) -> Reply:
    return Reply(
        "reply", request.receiver, request.sender, request, node.epoch, node.leader, verdict
    )


def taken(design: Design, bounds: Bounds, node: Node, reply: Reply) -> Node:
    request, own = reply.request, node_of(reply.receiver)
    if node.epoch != request.epoch or request.kind not in KINDS_OF_ROLE[node.role]:
        return node
    node = elections.learned(own, node, epoch=reply.epoch, leader=reply.leader)
    if node.epoch != request.epoch:
        return node
    if node.role == FOLLOWER:
        return _taken_from_leader(design, bounds, node, reply)
    if reply.verdict == "granted" and node.role in {PROSPECTIVE, CANDIDATE}:
        return node._replace(tally=node.tally | bit(reply.sender))
    return node


def _taken_from_leader(design: Design, bounds: Bounds, node: Node, reply: Reply) -> Node:
    if reply.verdict == "part" and node.download == reply.request.offset:
        node = node._replace(has_heard=bounds.pre_votes)
        return replication.installed(design, node, reply.entries)
    if reply.verdict == "gone" and node.download:
        return node._replace(download=0, has_heard=bounds.pre_votes)
    if node.download or reply.verdict not in {"diverging", "snapshot", "records"}:
        return node
    node = node._replace(has_heard=bounds.pre_votes)
    if reply.verdict == "diverging":
        return replication.truncated(design, node, offset=reply.offset, epoch=reply.last_epoch)
    if reply.verdict == "snapshot":
        return replication.begun_download(node, offset=reply.offset)
    if reply.offset != node.end:
        return node
    return replication.appended(
        design, node, entries=reply.entries, watermark=reply.watermark, syncs=bounds.syncs_at_once
    )
