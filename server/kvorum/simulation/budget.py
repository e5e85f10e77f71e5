"""The limit of damage: a majority of the voters must never lose the records that it stored."""

from __future__ import annotations

from kvorum.raft import VoterSet
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.quorum import SimulatedQuorum


def may_damage(quorum: SimulatedQuorum, node: SimulatedNode) -> bool:
    """Return whether a majority of every voter set that any node knows is sound without `node`.

    Controllers whose disks are damaged may join such a set at any time, and count as its members.
    """
    if node.is_barred:
        return False
    damaged = [one for one in quorum.nodes.values() if one.is_damaged or one is node]
    unsound = VoterSet.of(one.as_voter() for one in damaged if one.can_vote)
    known = {one.voters for one in quorum.nodes.values()}
    return all(
        _has_majority(quorum, _joined(voters, unsound), without=node)
        for voters in known
        if voters.voters
    )


def _joined(voters: VoterSet, others: VoterSet) -> VoterSet:
    """Return a voter set with the voters of another set whose ids the first one lacks."""
    new = [voter for voter in others.voters if voters.by_id(voter.key.id) is None]
    return VoterSet.of((*voters.voters, *new))


def may_become(quorum: SimulatedQuorum, voters: VoterSet) -> bool:
    """Return whether a majority of a voter set is sound, and runs."""
    return bool(voters.voters) and _has_majority(quorum, voters, is_running=True)


def _has_majority(
    quorum: SimulatedQuorum,
    voters: VoterSet,
    *,
    without: SimulatedNode | None = None,
    is_running: bool = False,
) -> bool:
    sound = [
        voter
        for voter in voters.voters
        if (node := quorum.nodes.get(voter.key.id)) is not None
        and node is not without
        and voter.is_replica(node.key)
        and not (node.is_damaged or node.is_barred)
        and (node.is_up or not is_running)
    ]
    return len(sound) >= voters.majority


def replace_disk(quorum: SimulatedQuorum, node: SimulatedNode) -> None:
    """Give a node whose process is gone an empty disk of another directory id.

    A voter that is known by its id alone would count as the voter whose records are lost with the
    old disk: such a node never starts again.
    """
    if node.can_vote and not is_known_by_directory(quorum, node):
        node.is_barred = True
        quorum.around.trace.say(f"{node.node_id} does not come back")
    else:
        node.wipe()
        quorum.around.trace.say(f"{node.node_id} has another disk")


def is_known_by_directory(quorum: SimulatedQuorum, node: SimulatedNode) -> bool:
    """Return whether every controller can distinguish a node's directory from a new one.

    Where the configuration names the voters, every other controller must have a durable record that
    contains the node's directory id.
    """
    kind = quorum.around.options.kind
    if kind is not QuorumKind.UPGRADED:
        return kind is QuorumKind.DYNAMIC
    others = [one for one in quorum.nodes.values() if one.can_vote and one is not node]
    return all(_names_durably(one, node) for one in others)


def _names_durably(observer: SimulatedNode, node: SimulatedNode) -> bool:
    """Return whether a running node's durable log rules out a new directory of another node."""
    core = observer.core
    if core is None or observer.is_damaged:
        return False
    offset, voters = core.history.voters_offset, core.history.voters
    is_durable = offset is not None and offset < core.log.durable_end_offset
    is_another = voters.by_id(node.node_id) is None
    return is_durable and (is_another or voters.names(node.key))
