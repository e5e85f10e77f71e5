"""The limit of damage: a majority of the voters must never lose the records that it stored."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from kvorum.metadata.voters import TargetVoters
from kvorum.raft import ReplicaKey, VoterSet
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.quorum import SimulatedQuorum


def may_damage(quorum: SimulatedQuorum, node: SimulatedNode) -> bool:
    """Return whether a majority of every voter set that any node knows is sound without `node`.

    The sets on the way to the target voters count too.
    """
    if node.is_barred:
        return False
    possible = quorum.around.properties.reassignments.possible_targets()
    return all(
        _is_safe(quorum, voters, damaged=node)
        for voters in _sets_ahead(quorum, _known_sets(quorum), possible)
    )


def may_reach(quorum: SimulatedQuorum, targets: TargetVoters) -> bool:
    """Return whether a majority of every voter set on the way to target voters is sound."""
    possible = quorum.around.properties.reassignments.possible_targets()
    return all(
        _is_safe(quorum, voters)
        for voters in _sets_ahead(quorum, _known_sets(quorum), (*possible, targets))
    )


def _known_sets(quorum: SimulatedQuorum) -> set[VoterSet]:
    """Return the voter sets that are in force for any node, or will be after a removal."""
    known = {one.voters for one in quorum.nodes.values() if one.voters.voters}
    without = {voters.without(removed) for voters in known for removed in quorum.removals}
    return known | {voters for voters in without if voters.voters}


def _is_safe(
    quorum: SimulatedQuorum, voters: VoterSet, *, damaged: SimulatedNode | None = None
) -> bool:
    """Return whether a majority of a voter set is sound, without `damaged`.

    Controllers whose disks are damaged may join such a set at any time, and count as its members.
    """
    unsound = VoterSet.of(
        one.as_voter()
        for one in quorum.nodes.values()
        if one.can_vote and (one.is_damaged or one is damaged)
    )
    return _has_majority(quorum, _joined(voters, unsound), without=damaged)


def _sets_ahead(
    quorum: SimulatedQuorum, starts: Iterable[VoterSet], possible: Iterable[TargetVoters]
) -> Iterator[VoterSet]:
    """Yield the voter sets that single steps towards any target voters lead to, in any order.

    Target voters may take the place of another one halfway.
    """
    wanted = [_wanted_keys(quorum, targets) for targets in possible]
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        voters = waiting.pop()
        yield voters
        for one in chain.from_iterable(_steps(quorum, voters, keys) for keys in wanted):
            if one.voters and one not in seen:
                seen.add(one)
                waiting.append(one)


def _wanted_keys(quorum: SimulatedQuorum, targets: TargetVoters) -> dict[int, ReplicaKey]:
    return {
        target.id: ReplicaKey(
            target.id, target.directory_id or quorum.nodes[target.id].directory_id
        )
        for target in targets
    }


def _steps(
    quorum: SimulatedQuorum, voters: VoterSet, wanted: Mapping[int, ReplicaKey]
) -> list[VoterSet]:
    """Return the voter sets that one step towards the wanted voters leads to."""
    keys = {voter.key for voter in voters.voters}
    coming = [key for key in wanted.values() if key not in keys]
    leaving = [key for key in keys if key not in wanted.values()]
    if len(coming) < len(leaving):
        return [voters.without(key.id) for key in leaving]
    # A node's old directory goes before its new one comes.
    after = [voters.without(key.id) for key in leaving if key.id in wanted]
    return after + [
        VoterSet.of((*voters.voters, quorum.nodes[key.id].as_voter()))
        for key in coming
        if voters.by_id(key.id) is None
    ]


def _joined(voters: VoterSet, others: VoterSet) -> VoterSet:
    """Return a voter set with the voters of another set whose ids the first one lacks."""
    new = [voter for voter in others.voters if voters.by_id(voter.key.id) is None]
    return VoterSet.of((*voters.voters, *new))


def may_become(quorum: SimulatedQuorum, voters: VoterSet) -> bool:
    """Return whether a majority of a voter set is sound, and runs; and of those on from there."""
    if not voters.voters or not _has_majority(quorum, voters, is_running=True):
        return False
    possible = quorum.around.properties.reassignments.possible_targets()
    return all(_is_safe(quorum, ahead) for ahead in _sets_ahead(quorum, [voters], possible))


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
    return is_durable and (voters.by_id(node.node_id) is None or voters.names(node.key))
