"""Crashes with restart: what was not durable is gone, and the stored record decides the role.

Where a disk was replaced, everything is gone, the promises too: the node is another replica.
"""

from tests.model.exploration.design import Design
from tests.model.exploration.elections import moved
from tests.model.exploration.replication import no_progress
from tests.model.exploration.state import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    NOBODY,
    RESIGNED,
    UNATTACHED,
    Node,
    State,
    bit,
    counts_as,
    is_majority,
    may_stand,
    replica_of,
    voters_of,
)


def restarted(design: Design, own: int, node: Node, *, first_voters: int, node_count: int) -> Node:
    """Return a node after a power cut and a restart."""
    log = node.log[: node.durable]
    vote = NOBODY if design.forgets_vote_in_crash else node.voted
    node = node._replace(log=log, watermark=0, voted=vote)
    if node.leader == own:
        return _former_leader(design, own, node, node_count=node_count)
    has_own_vote = node.voted == replica_of(own, node) and node.leader == NOBODY
    if has_own_vote and may_stand(design, own, node, first_voters):
        standing = moved(node, CANDIDATE, epoch=node.epoch)
        return standing._replace(tally=counts_as(design, own, node))
    role = UNATTACHED if node.leader == NOBODY else FOLLOWER
    return moved(node, role, epoch=node.epoch, leader=node.leader)


def _former_leader(design: Design, own: int, node: Node, *, node_count: int) -> Node:
    """Return a node that finds that it led: it never leads on, for its last records may be gone."""
    if design.leads_on_after_restart:
        leader = moved(node, LEADER, epoch=node.epoch, leader=own)
        return leader._replace(progress=no_progress(node_count))
    if design.votes_in_epoch_it_led:
        return moved(node, UNATTACHED, epoch=node.epoch)._replace(voted=NOBODY)
    return moved(node, RESIGNED, epoch=node.epoch, leader=own)


def with_new_disk(node: Node) -> Node:
    """Return a node that begins again, with an empty directory."""
    return Node(directory=node.directory + 1)


def may_lose_disk(state: State, own: int) -> bool:
    """Tell whether a majority of the voters has kept its disks when this one is replaced too.

    That is asked of all voters that may count, now or once a record is committed.
    """
    kept = sum(bit(replica_of(i, node)) for i, node in enumerate(state.nodes) if i != own)
    logs = [state.history.committed, *(node.log for node in state.nodes)]
    sets = {voters_of(log, state.first_voters) for log in logs}
    return all(is_majority(kept, voters) for voters in sets)
