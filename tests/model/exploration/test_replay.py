"""The steps of the real cores are allowed by the model, verb by verb.

KVORUM_MODEL_LARGE=1 in the environment replays some thousand runs, which takes long.
"""

import os
from random import Random
from unittest.mock import patch

import pytest
from tests.model.exploration import reconfiguration
from tests.model.exploration.design import CORRECT
from tests.model.exploration.invariants import TARGET_STEP_INVARIANTS
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
from tests.model.scenarios import script
from tests.model.scenarios import simulation as plain
from tests.model.scenarios.script import TRACE_FILES, TRACES_FOLDER, stir

from kvorum.controller.quorum_reassignment import pursuit
from kvorum.controller.quorum_reassignment.next_step import AddVoter, HandOver, Reached, RemoveVoter
from kvorum.metadata.voters import VoterKey, parse_target_voters
from kvorum.node.raft import raft_client
from kvorum.raft import election_requests
from kvorum.raft import poll as polling
from kvorum.raft.log_view import LogView
from kvorum.raft.messages import VoteRequest
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Follower, Leader, Role, Unattached
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.properties.reassignments import Step
from kvorum.simulation.properties.watch import Properties
from kvorum.simulation.world import World
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import ValidityKind, ValidOffsetAndEpoch


def look_at_step(replay: Replay, own: int, text: str, step: Step, next_offset: int) -> None:
    """Note as the replay's problem that the model lets no leader take a step.

    `text` lists the wanted voters, and the leader acts on what is below `next_offset`.

    The core does not know of the target voters, so this is the one place where a replay looks at
    more than that: right before a step is taken, the model's leader has to be one that may take it.
    Who is wanted is taken from the step; that these are the latest target voters is a property of
    the simulator (P30, P31). Nor can the model know which replicas have fetched of late: every
    replica that the leader has heard of counts.
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
        (check.__name__ for check in TARGET_STEP_INVARIANTS if not check(state, label, state)), None
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


NEW_DISK = (
    "form 1 2 3",
    "run 2500",
    "crash 3",
    "wipe 3 9",
    "start 3",
    "run 2000",
    "crash 2",
    "run 9000",
)
"""A voter has lost its disk and the leader has gone: the third voter has no majority."""
IS_LARGE = bool(os.environ.get("KVORUM_MODEL_LARGE"))
PLAIN_SEEDS = range(500 if IS_LARGE else 12)
WORLD_SEEDS = range(2000 if IS_LARGE else 10)
SEED_WITH_TARGET_VOTERS = 9
WORLD_MS = 12_000
STEPS = 400


def replayed_scenario(name: str) -> Replay:
    return replayed_steps(script.parse((TRACES_FOLDER / f"{name}.txt").read_text(encoding="utf-8")))


def replayed_steps(steps: list[script.Step]) -> Replay:
    replay = Replay(10)
    with patch.object(plain, "RaftCore", replay.core_class()):
        script.run(steps)
    return replay


def replayed_new_disk() -> Replay:
    """Return the replay of a quorum with a voter that has lost its disk."""
    return replayed_steps([script.Step([], command, []) for command in NEW_DISK])


def replayed_plainly(seed: int, voter_count: int, *, steps: int = STEPS) -> Replay:
    """Return the replay of a random run of cores under commands."""
    replay = Replay(9)
    with patch.object(plain, "RaftCore", replay.core_class()):
        random = Random(f"{voter_count}-{seed}")
        simulation = plain.Simulation(seed=seed)
        simulation.bring_up(range(1, voter_count + 1))
        simulation.add_observer(9)
        for _ in range(steps):
            stir(simulation, random)
    return replay


def replayed_world(seed: int) -> Replay:
    """Return the replay of a simulated world; whether its properties hold is not asked here.

    A disk does not lose what was synced: no model covers that.
    """
    whole = World(seed, duration_ms=WORLD_MS).plan
    plan = tuple(fault for fault in whole if fault.kind is not FaultKind.BIT_FLIP)
    world = World(seed, duration_ms=WORLD_MS, plan=plan)
    replay = Replay(max(world.quorum.nodes))
    checked = Properties.step_taken

    def step_taken(
        properties: Properties, node: ObservedNode, text: str, step: Step, next_offset: int
    ) -> None:
        look_at_step(replay, node.node_id - 1, text, step, next_offset)
        checked(properties, node, text, step, next_offset)

    with (
        patch.object(raft_client, "RaftCore", replay.core_class()),
        patch.object(Properties, "step_taken", step_taken),
    ):
        try:
            world.run()
        except PropertyViolatedError:
            assert replay.event_count > 0
    return replay


@pytest.mark.parametrize("name", sorted(file.stem for file in TRACE_FILES))
def test_what_cores_do_in_a_scenario_is_allowed(name: str) -> None:
    assert replayed_scenario(name).problem is None


@pytest.mark.parametrize("voter_count", [1, 2, 3, 5])
def test_what_cores_do_under_random_commands_is_allowed(voter_count: int) -> None:
    event_count = 0
    for seed in PLAIN_SEEDS:
        replay = replayed_plainly(seed, voter_count)
        assert replay.problem is None, f"seed {seed}: {replay.problem}"
        event_count += replay.event_count
    assert event_count > 20 * len(PLAIN_SEEDS)


def test_a_replaced_disk_does_not_end_a_replay() -> None:
    replay = replayed_new_disk()
    assert replay.problem is None
    assert (replay.replaced_count, replay.is_over) == (1, False)


@pytest.mark.slow
def test_what_cores_do_in_simulated_worlds_is_allowed() -> None:
    event_count = replaced_count = step_count = 0
    for seed in WORLD_SEEDS:
        replay = replayed_world(seed)
        assert replay.problem is None, f"seed {seed}: {replay.problem}"
        event_count += replay.event_count
        replaced_count += 0 if replay.is_over else replay.replaced_count
        step_count += replay.step_count
    assert event_count > 100 * len(WORLD_SEEDS)
    assert replaced_count > 0, "no world had a disk replaced"
    assert step_count > 10, "hardly a step towards target voters was taken"


@pytest.mark.parametrize("wrong", [HandOver(), Reached()], ids=str)
def test_a_step_of_no_leader_of_the_model_is_found_out(wrong: HandOver | Reached) -> None:
    def decides(*_: object) -> HandOver | Reached:
        return wrong

    with patch.object(pursuit, "next_step", decides):
        replay = replayed_world(SEED_WITH_TARGET_VOTERS)
    assert replay.problem is not None
    assert str(wrong) in replay.problem


def always(*_: object, **__: object) -> bool:
    return True


def grants_against_its_leader(role: Role, request: VoteRequest, *, is_up_to_date: bool) -> bool:
    return request.is_pre_vote and is_up_to_date


def counts_half(
    leader: Leader, voters: VoterSet, *, current: int | None, durable_end_offset: int
) -> int | None:
    return durable_end_offset if durable_end_offset > (current or 0) else None


def serves_any_position(log: LogView, position: OffsetAndEpoch) -> ValidOffsetAndEpoch:
    return ValidOffsetAndEpoch(ValidityKind.VALID, position)


def is_known_by_id(voter: Voter, key: ReplicaKey) -> bool:
    return voter.key.id == key.id


DEFECTS: dict[str, tuple[object, str, object]] = {
    "a vote for any log": (Unattached, "would_grant", always),
    "a pre-vote against a living leader": (Follower, "would_grant", grants_against_its_leader),
    "a candidate without a durable log": (polling, "may_campaign", always),
    "a leader that counts itself alone": (Leader, "advanced_high_watermark", counts_half),
    "a fetch served at any position": (LogView, "judge", serves_any_position),
}


DEFECTS_OF_DIRECTORIES: dict[str, tuple[object, str, object]] = {
    "a voter that is known by its id alone": (Voter, "is_replica", is_known_by_id),
    "a vote given for a voter in another directory": (election_requests, "_is_meant", always),
}


@pytest.mark.parametrize("name", DEFECTS_OF_DIRECTORIES)
def test_a_core_that_mistakes_a_directory_is_found_out(name: str) -> None:
    owner, attribute, defective = DEFECTS_OF_DIRECTORIES[name]
    with patch.object(owner, attribute, defective):
        assert replayed_new_disk().problem is not None


@pytest.mark.parametrize("name", DEFECTS)
def test_a_core_with_a_defect_is_found_out(name: str) -> None:
    owner, attribute, defective = DEFECTS[name]
    with patch.object(owner, attribute, defective):
        scenarios = map(replayed_scenario, ("a_candidate_has_its_log_durably", "refused_pre_vote"))
        is_seen = any(replay.problem is not None for replay in scenarios)
        assert is_seen or any(_is_found_out(seed) for seed in range(40))


def _is_found_out(seed: int) -> bool:
    try:
        return replayed_plainly(seed, 3, steps=1500).problem is not None
    except (plain.InvariantBrokenError, IndexError):
        # The simulation saw it first.
        return False
