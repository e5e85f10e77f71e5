"""How much may be damaged: never so much that a majority of the voters has lost what it stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvorum.raft import VoterSet
from kvorum.simulation.options import QuorumKind

if TYPE_CHECKING:
    from kvorum.simulation.node import SimulatedNode
    from kvorum.simulation.world import World


def may_damage(world: World, node: SimulatedNode) -> bool:
    """Tell whether a majority of every set of voters that anyone knows is sound without a node.

    Controllers whose disks are damaged may join such a set at any time, and count as if they had.
    """
    if node.is_barred:
        return False
    damaged = [one for one in world.nodes.values() if one.is_damaged or one is node]
    unsound = VoterSet.of(one.as_voter() for one in damaged if one.can_vote)
    known = {one.voters for one in world.nodes.values()}
    return all(
        _has_majority(world, _joined(voters, unsound), without=node)
        for voters in known
        if voters.voters
    )


def _joined(voters: VoterSet, others: VoterSet) -> VoterSet:
    """Return a set of voters with those of another whose ids it does not have."""
    new = [voter for voter in others.voters if voters.by_id(voter.key.id) is None]
    return VoterSet.of((*voters.voters, *new))


def may_become(world: World, voters: VoterSet) -> bool:
    """Tell whether a majority of a set of voters is sound, and runs."""
    return bool(voters.voters) and _has_majority(world, voters, is_running=True)


def _has_majority(
    world: World,
    voters: VoterSet,
    *,
    without: SimulatedNode | None = None,
    is_running: bool = False,
) -> bool:
    sound = [
        voter
        for voter in voters.voters
        if (node := world.nodes.get(voter.key.id)) is not None
        and node is not without
        and voter.is_replica(node.key)
        and not (node.is_damaged or node.is_barred)
        and (node.is_up or not is_running)
    ]
    return len(sound) >= voters.majority


def replace_disk(world: World, node: SimulatedNode) -> None:
    """Give a node whose process is gone an empty disk of another directory id.

    Voters that are known by their ids alone cannot be told from who had stored something: such a
    node stays away for good.
    """
    is_known_by_id = node.can_vote and world.options.kind is not QuorumKind.DYNAMIC
    if is_known_by_id:
        node.is_barred = True
        world.trace.say(f"{node.node_id} does not come back")
    else:
        node.wipe()
        world.trace.say(f"{node.node_id} has another disk")
