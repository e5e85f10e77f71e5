"""Elections: who may ask for votes, who gives them, and who then leads (KIP-595, KIP-996)."""

from tests.model.exploration.design import Design
from tests.model.exploration.replication import no_progress
from tests.model.exploration.state import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    NOBODY,
    PROSPECTIVE,
    RESIGNED,
    UNATTACHED,
    Entry,
    Node,
    Request,
    counts_as,
    replica_of,
)


def moved(node: Node, role: str, *, epoch: int, leader: int = NOBODY) -> Node:
    """Return a node in another role; its vote stays valid in the same epoch only."""
    knows_watermark = role not in {LEADER, RESIGNED}
    return node._replace(
        role=role,
        epoch=epoch,
        leader=leader,
        voted=node.voted if epoch == node.epoch else NOBODY,
        watermark=node.watermark if knows_watermark else 0,
        promised=0,
        has_heard=False,
        tally=0,
        progress=(),
        download=0,
    )


def learned(own: int, node: Node, *, epoch: int, leader: int) -> Node:
    if leader == own:
        leader = NOBODY
    if epoch > node.epoch:
        return moved(node, UNATTACHED if leader == NOBODY else FOLLOWER, epoch=epoch, leader=leader)
    if epoch < node.epoch or leader == NOBODY or node.role == FOLLOWER:
        return node
    return moved(node, FOLLOWER, epoch=epoch, leader=leader) if node.leader == NOBODY else node


def prospective(design: Design, own: int, node: Node) -> Node:
    """Return a node whose timer ran out: it begins to ask whether it could win."""
    asking = moved(node, PROSPECTIVE, epoch=node.epoch, leader=node.leader)
    return asking._replace(tally=counts_as(design, own, node))


def given_up(design: Design, own: int, node: Node) -> Node:
    """Return a prospective that did not win: it goes back to what it was."""
    has_leader = node.leader not in {NOBODY, own}
    back = moved(node, FOLLOWER if has_leader else UNATTACHED, epoch=node.epoch, leader=node.leader)
    return back._replace(voted=NOBODY) if design.forgets_vote_when_pre_vote_fails else back


def candidate(design: Design, own: int, node: Node) -> Node:
    """Return a node that stands for the next epoch, its own vote being its first."""
    standing = moved(node, CANDIDATE, epoch=node.epoch + 1)
    return standing._replace(voted=replica_of(own, node), tally=counts_as(design, own, node))


def may_stand(design: Design, node: Node) -> bool:
    """Tell whether a node may claim to have its log: a crash must not make it a lie."""
    return node.durable == node.end or design.stands_with_unflushed_log


def leading(own: int, node: Node, *, node_count: int, syncs: bool) -> Node:
    """Return a node that has won: before all else it writes the first record of its epoch."""
    leader = moved(node, LEADER, epoch=node.epoch, leader=own)
    log = (*node.log, Entry(node.epoch, replica_of(own, node)))
    return leader._replace(
        log=log, durable=len(log) if syncs else node.durable, progress=no_progress(node_count)
    )


def voted(design: Design, own: int, node: Node, request: Request) -> tuple[Node, bool]:
    """Return what a node becomes that is asked for its vote, and whether it gives it."""
    if request.epoch < node.epoch:
        return node, False
    if request.epoch > node.epoch:
        node = moved(node, UNATTACHED, epoch=request.epoch)
    if not _would_grant(design, own, node, request):
        return node, False
    if request.kind == "pre-vote" and not design.pre_vote_binds:
        return node, True
    if node.voted == NOBODY:
        tally = counts_as(design, own, node) if node.tally else 0
        node = node._replace(voted=request.sender, tally=tally)
    return node, True


def refused(node: Node, request: Request) -> Node:
    """Return what a node becomes that is asked for the vote of a voter that it is not."""
    return moved(node, UNATTACHED, epoch=request.epoch) if request.epoch > node.epoch else node


def _would_grant(design: Design, own: int, node: Node, request: Request) -> bool:
    theirs, ours = (request.last_epoch, request.offset), (node.last_epoch, node.end)
    is_up_to_date = theirs >= ours or design.votes_for_any_log
    if request.kind == "pre-vote":
        has_leader = node.role == FOLLOWER and node.has_heard
        may_disturb = not has_leader or design.pre_vote_against_living_leader
        return node.role != LEADER and may_disturb and is_up_to_date
    if node.role not in {UNATTACHED, PROSPECTIVE}:
        return False
    if node.voted != NOBODY:
        return node.voted == request.sender
    knows_leader = node.leader != NOBODY
    if knows_leader and design.votes_in_epoch_it_led and node.leader == own:
        knows_leader = False
    return is_up_to_date and not knows_leader
