"""The steps of leaders of simulated worlds towards target voters, as steps of the model.

The core does not know of the target voters, so this is the one place where a replay looks at more
than that: right before a step is taken, the model's leader has to be one that may take it. Who is
wanted is taken from the step; that these are the latest target voters is a property of the
simulator (P30, P31). Nor can the model know which replicas have fetched of late: every replica that
the leader has heard of counts.
"""

from tests.model.exploration import reconfiguration, target_invariants
from tests.model.exploration.design import CORRECT
from tests.model.exploration.replay import Replay
from tests.model.exploration.state import (
    LEADER,
    NODES_MAX,
    Entry,
    Log,
    State,
    bit,
    members,
    node_of,
    replica_of,
)

from kvorum.controller.quorum_reassignment.next_step import AddVoter, HandOver, RemoveVoter
from kvorum.metadata.voters import VoterKey, parse_target_voters
from kvorum.raft.voter_set import ReplicaKey
from kvorum.simulation.properties.reassignments import Step


def look_at_step(replay: Replay, own: int, text: str, step: Step, next_offset: int) -> None:
    """Note as the replay's problem that the model lets no leader take a step.

    `text` lists the wanted voters, and the leader acts on what is below `next_offset`.
    """
    if replay.problem is not None or replay.is_over:
        return
    replay.step_count += 1
    broken = _broken(replay, own, text, step, next_offset)
    if broken is not None:
        replay.problem = f"node {own + 1} would {step}, wanted are {text}: {broken}"


def _broken(replay: Replay, own: int, text: str, step: Step, next_offset: int) -> str | None:
    state = replay.state()
    node = state.nodes[own]
    if node.role != LEADER or not reconfiguration.may_change(CORRECT, node):
        return "it may not change the voters"
    start = next(offset for offset, entry in enumerate(node.log) if entry.epoch == node.epoch)
    if not start < next_offset <= node.watermark:
        return f"it knows what is below {next_offset}, committed are {start} to {node.watermark}"
    own_replica, voters = replica_of(own, node), replay.voters(node)
    targets = _targets(replay, state, voters, text)
    # The earliest record by which the leader can have begun to follow the targets.
    state = _with_targets(state, node.log[start], targets)
    match step:
        case AddVoter():
            verb, replica = "adds voter", _replica(replay, step.key)
            if state.nodes[node_of(replica)].directory != replica // NODES_MAX:
                # Its disk is replaced, which the leader cannot know yet.
                return None
        case RemoveVoter():
            verb, replica = "removes voter", _replica(replay, step.key)
        case HandOver():
            verb, replica = "hands over", own_replica
        case _:
            verb, replica = "clears the targets", own_replica
    fetched = sum(
        bit(number + NODES_MAX * directory)
        for directory, row in enumerate(node.progress)
        for number, end in enumerate(row)
        if end and number != own
    )
    label = (verb, own, replica, fetched)
    return next(
        (
            check.__name__
            for check in target_invariants.STEP_INVARIANTS
            if not check(state, label, state)
        ),
        None,
    )


def _replica(replay: Replay, key: VoterKey) -> int:
    return replay.replica(ReplicaKey(key.id, key.directory_id))


def _targets(replay: Replay, state: State, voters: int, text: str) -> int:
    """Return the targets: one without a directory is the voter of its node, if that is one."""
    targets = 0
    for target in parse_target_voters(text):
        number = target.id - 1
        known = [voter for voter in members(voters) if node_of(voter) == number]
        if target.directory_id is not None:
            targets |= bit(_replica(replay, target))
        else:
            targets |= bit(known[0] if known else replica_of(number, state.nodes[number]))
    return targets


def _with_targets(state: State, stating: Entry, targets: int) -> State:
    """Return the state in which a record states the target voters, wherever it is."""

    def stated(log: Log) -> Log:
        return tuple(one._replace(targets=targets) if one == stating else one for one in log)

    history = state.history._replace(committed=stated(state.history.committed))
    nodes = tuple(node._replace(log=stated(node.log)) for node in state.nodes)
    return state._replace(nodes=nodes, history=history)
