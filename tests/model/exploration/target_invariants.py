"""The invariants of the target voters and of the steps towards them (KIP-642).

Nothing here asks the decision under test: what a step should be is read from the logs, and who
fetches from the step's label.
"""

from tests.model.exploration.actions import Label
from tests.model.exploration.state import (
    REACHED,
    Node,
    State,
    bit,
    is_majority,
    node_of,
    replica_of,
    targets_of,
    voters_of,
)


def targets_end_when_reached(state: State) -> bool:
    """In every log target voters are cleared only where they are the latest, and are the voters.

    An operator may cancel any.
    """
    return all(
        targets_of(log[:offset]) == voters_of(log[:offset], state.first_voters)
        for log in {node.log for node in state.nodes}
        for offset, entry in enumerate(log)
        if entry.targets == REACHED
    )


def steps_follow_the_targets(before: State, label: Label, after: State) -> bool:
    """A step leads to the targets that were committed last, when everything up to then is known."""
    match label:
        case (str(verb), int(own), int(replica), int()) if verb in STEPS:
            targets = _latest_targets(before, before.nodes[own])
            voters = _voters(before, own)
            replica_bit = bit(replica)
            if verb == "adds voter":
                return bool(targets & replica_bit & ~voters)
            if verb == "clears the targets":
                return targets == voters
            # A leader that hands over is named as the one that goes.
            return bool(targets) and bool(voters & replica_bit & ~targets)
        case _:
            return True


STEPS = {"adds voter", "removes voter", "hands over", "clears the targets"}


def _latest_targets(state: State, node: Node) -> int:
    """Return the target voters that a leader has to follow: those that were committed last.

    A leader that another one has replaced cannot know that; nothing that it writes is committed.
    """
    if _leads_latest_epoch(state, node):
        return targets_of(state.history.committed)
    return targets_of(node.log[: node.watermark])


def _leads_latest_epoch(state: State, node: Node) -> bool:
    return not any(state.history.leaders[node.epoch + 1 :])


def _voters(state: State, own: int) -> int:
    return voters_of(state.nodes[own].log, state.first_voters)


def steps_wait_for_the_one_before(before: State, label: Label, after: State) -> bool:
    """A step is taken when the voters that it begins from are committed."""
    match label:
        case (str(verb), int(own), int(), int()) if verb in STEPS:
            node = before.nodes[own]
            return not any(entry.voters for entry in node.log[node.watermark :])
        case _:
            return True


def majority_fetches_after_step(before: State, label: Label, after: State) -> bool:
    """Before a voter comes, goes or hands over, a majority of the voters that are then fetches."""
    match label:
        case ("adds voter" | "removes voter", int(own), int(replica), int(fetching)):
            own_replica = replica_of(own, before.nodes[own])
            changed = _voters(before, own) ^ bit(replica)
            return is_majority(fetching | bit(own_replica), changed)
        case ("hands over", int(own), int(replica), int(fetching)):
            rest = _voters(before, own) & ~bit(replica)
            return is_majority(fetching, rest)
        case _:
            return True


def leader_leaves_last(before: State, label: Label, after: State) -> bool:
    """No leader removes itself, nor hands over before it is the only voter left to go."""
    match label:
        case ("removes voter", int(own), int(replica), int()):
            return node_of(replica) != own
        case ("hands over", int(own), int(replica), int()):
            targets = _latest_targets(before, before.nodes[own])
            return _voters(before, own) & ~targets == bit(replica)
        case _:
            return True


def added_voter_has_caught_up(before: State, label: Label, after: State) -> bool:
    """An added replica has all up to the first targets of a row, and the epoch's first record.

    A leader that another one has replaced cannot know what became of a replica.
    """
    match label:
        case ("adds voter", int(own), int(replica), int()):
            leader, target = before.nodes[own], before.nodes[node_of(replica)]
            if not _leads_latest_epoch(before, leader):
                return True
            needed = leader.log[: _end_of_first_look(leader)]
            is_there = replica_of(node_of(replica), target) == replica
            return is_there and target.log[: len(needed)] == needed
        case _:
            return True


def _end_of_first_look(leader: Node) -> int:
    starts = [offset for offset, entry in enumerate(leader.log) if entry.epoch == leader.epoch]
    stated = [
        offset
        for offset, entry in enumerate(leader.log[: leader.watermark])
        if entry.targets > 0 and not targets_of(leader.log[:offset])
    ]
    return max(starts[0], *stated[-1:]) + 1


def changes_by_hand_follow_the_targets(before: State, label: Label, after: State) -> bool:
    """While a leader knows targets, no client changes the voters by hand in another direction."""
    match label:
        case ("changes voters to", int(own), int(changed)):
            node, voters = before.nodes[own], _voters(before, own)
            targets = targets_of(node.log[: node.watermark])
            return not targets or not (changed ^ voters) & ~(voters ^ targets)
        case _:
            return True


STATE_INVARIANTS = (targets_end_when_reached,)
STEP_INVARIANTS = (
    steps_follow_the_targets,
    steps_wait_for_the_one_before,
    majority_fetches_after_step,
    leader_leaves_last,
    added_voter_has_caught_up,
    changes_by_hand_follow_the_targets,
)
