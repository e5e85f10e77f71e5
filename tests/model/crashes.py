"""Crashes with restart: what was not durable is gone, and the stored record decides the role."""

from __future__ import annotations

from tests.model.design import Design
from tests.model.elections import moved
from tests.model.state import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    NOBODY,
    RESIGNED,
    UNATTACHED,
    Node,
    bit,
    may_stand,
)


def restarted(design: Design, own: int, node: Node, *, first_voters: int, node_count: int) -> Node:
    """Return a node after a power cut and a restart."""
    log = node.log[: node.durable]
    vote = NOBODY if design.forgets_vote_in_crash else node.voted
    node = node._replace(log=log, watermark=0, voted=vote)
    if node.leader == own:
        return _former_leader(design, own, node, node_count=node_count)
    if node.voted == own and node.leader == NOBODY and may_stand(own, node, first_voters):
        return moved(node, CANDIDATE, epoch=node.epoch)._replace(tally=bit(own))
    role = UNATTACHED if node.leader == NOBODY else FOLLOWER
    return moved(node, role, epoch=node.epoch, leader=node.leader)


def _former_leader(design: Design, own: int, node: Node, *, node_count: int) -> Node:
    """Return a node that finds that it led: it never leads on, for its last records may be gone."""
    if design.leads_on_after_restart:
        leader = moved(node, LEADER, epoch=node.epoch, leader=own)
        return leader._replace(progress=(0,) * node_count)
    if design.votes_in_epoch_it_led:
        return moved(node, UNATTACHED, epoch=node.epoch)._replace(voted=NOBODY)
    return moved(node, RESIGNED, epoch=node.epoch, leader=own)
