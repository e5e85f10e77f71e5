"""The invariants of every state and of every step. Each function returns whether one holds.

The invariants of the target voters and of the steps towards them (KIP-642). Nothing here asks the
decision under test: what a step should be is read from the logs, and who fetches from the step's
label.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, pairwise

from tests.model.exploration.actions import Label
from tests.model.exploration.state import (
    LEADER,
    NOBODY,
    NODES_MAX,
    REACHED,
    RESIGNED,
    Log,
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
            return is_majority(fetching | bit(own_replica), _voters(before, own) ^ bit(replica))
        case ("hands over", int(own), int(replica), int(fetching)):
            return is_majority(fetching, _voters(before, own) & ~bit(replica))
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


TARGET_STATE_INVARIANTS = (targets_end_when_reached,)
TARGET_STEP_INVARIANTS = (
    steps_follow_the_targets,
    steps_wait_for_the_one_before,
    majority_fetches_after_step,
    leader_leaves_last,
    added_voter_has_caught_up,
    changes_by_hand_follow_the_targets,
)


def one_leader_per_epoch(state: State) -> bool:
    """No epoch ever has two leaders, whatever became of the first."""
    return all(leaders.bit_count() <= 1 for leaders in state.history.leaders)


def vote_once(state: State) -> bool:
    """No replica ever votes for two candidates of one epoch, crashes or not."""
    return all(
        candidates.bit_count() <= 1 for of_epoch in state.history.votes for candidates in of_epoch
    )


def log_matching(state: State) -> bool:
    """Two logs that have a record of one epoch at one offset are the same up to it."""
    for one, other in combinations({node.log for node in state.nodes}, 2):
        for offset in range(min(len(one), len(other)), 0, -1):
            if one[offset - 1].epoch == other[offset - 1].epoch:
                if one[:offset] != other[:offset]:
                    return False
                break
    return True


def leader_completeness(state: State) -> bool:
    """The leader of the latest epoch that has had one has everything that was ever committed."""
    latest = max(epoch for epoch, led in enumerate(state.history.leaders) if led or epoch == 0)
    committed = state.history.committed
    return all(
        node.log[: len(committed)] == committed
        for node in state.nodes
        if node.role == LEADER and node.epoch == latest
    )


def committed_stays(state: State) -> bool:
    """Records that a node takes to be committed are so, and are the same everywhere."""
    committed = state.history.committed
    return all(node.log[: node.watermark] == committed[: node.watermark] for node in state.nodes)


def durable_majority(state: State) -> bool:
    """Everything committed is durable on a majority of the voters that it was counted over.

    A voter may have had it whose disk was replaced since.
    """
    committed, length = state.history.committed, len(state.history.committed)
    holders = 0
    for index, node in enumerate(state.nodes):
        holders |= sum(bit(index + NODES_MAX * lost) for lost in range(node.directory))
        if node.durable >= length and node.log[:length] == committed:
            holders |= bit(replica_of(index, node))
    return not committed or is_majority(holders, state.history.counted_by)


def overlapping_majorities(state: State) -> bool:
    """Voter sets that follow each other differ by one voter, and one of them waits at a time."""
    return all(_changes_one_by_one(state, node) for node in state.nodes)


def _changes_one_by_one(state: State, node: Node) -> bool:
    sets = [state.first_voters, *(entry.voters for entry in node.log if entry.voters)]
    if any((one ^ other).bit_count() > 1 for one, other in pairwise(sets)):
        return False
    waiting = node.log[_shared(node.log, state.history.committed) :]
    return sum(1 for entry in waiting if entry.voters) <= 1


def _shared(log: Log, committed: Log) -> int:
    """Return how many records of a log are committed."""
    pairs = enumerate(zip(log, committed, strict=False))
    shorter = min(len(log), len(committed))
    return next((offset for offset, (one, other) in pairs if one != other), shorter)


def epochs_in_order(state: State) -> bool:
    """Epochs never fall along a log, and none is above the node's own."""
    return all(
        all(one.epoch <= other.epoch for one, other in pairwise(node.log))
        and node.last_epoch <= node.epoch
        for node in state.nodes
    )


def snapshots_are_committed(state: State) -> bool:
    """A snapshot holds committed records only, and the log goes on after it."""
    committed = state.history.committed
    return all(
        node.start <= node.end and node.log[: node.start] == committed[: node.start]
        for node in state.nodes
    )


def epochs_grow(before: State, label: Label, after: State) -> bool:
    """A replica's epoch never falls, and in one epoch its vote and its leader stay."""
    return all(_keeps_promises(one, other) for one, other in _changed(before, after))


def _keeps_promises(before: Node, after: Node) -> bool:
    if after.epoch != before.epoch:
        return after.epoch > before.epoch
    keeps_vote = before.voted in {NOBODY, after.voted}
    return keeps_vote and before.leader in {NOBODY, after.leader}


def watermark_stays(before: State, label: Label, after: State) -> bool:
    """A high watermark never falls, and nothing below it is cut off, but for a fresh start."""
    return label[0] == "crashes" or all(
        _keeps_committed(one, other) for one, other in _changed(before, after)
    )


def _keeps_committed(before: Node, after: Node) -> bool:
    if after.role in {LEADER, RESIGNED} and after.role != before.role:
        return True
    known = before.watermark
    return after.watermark >= known and after.log[:known] == before.log[:known]


def pre_vote_leaves_no_trace(before: State, label: Label, after: State) -> bool:
    """A pre-vote given or refused changes neither vote nor log (KIP-996)."""
    return label[0] != "pre-vote" or all(
        (one.voted, one.log, one.durable) == (other.voted, other.log, other.durable)
        for one, other in _changed(before, after)
        if one.epoch == other.epoch
    )


def living_leader_is_kept(before: State, label: Label, after: State) -> bool:
    """A node that hears the leader of an epoch gives no pre-vote in it."""
    match label:
        case ("pre-vote", int(asker), int(asked), "granted", *_):
            node = before.nodes[asked]
            return node.epoch < before.nodes[asker].epoch or not node.has_heard
        case _:
            return True


def _changed(before: State, after: State) -> Iterator[tuple[Node, Node]]:
    """Yield the replicas that have changed; with another directory a node is another replica."""
    for one, other in zip(before.nodes, after.nodes, strict=True):
        if one is not other and one.directory == other.directory:
            yield one, other


STATE_INVARIANTS: Mapping[str, Callable[[State], bool]] = {
    check.__name__: check
    for check in (
        *TARGET_STATE_INVARIANTS,
        one_leader_per_epoch,
        vote_once,
        log_matching,
        leader_completeness,
        committed_stays,
        durable_majority,
        overlapping_majorities,
        epochs_in_order,
        snapshots_are_committed,
    )
}
STEP_INVARIANTS: Mapping[str, Callable[[State, Label, State], bool]] = {
    check.__name__: check
    for check in (
        *TARGET_STEP_INVARIANTS,
        epochs_grow,
        watermark_stays,
        pre_vote_leaves_no_trace,
        living_leader_is_kept,
    )
}
