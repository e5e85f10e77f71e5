"""The forecast against what simulated quorums have committed, for every subset of survivors.

The worlds know what is committed: they watch every node. The tool knows the survivors' disks only.
"""

import secrets
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from tests.support.lost_quorum import (
    OPERATOR,
    copied,
    directory_of,
    keeps,
    kill_all,
    name_directories,
    read,
    static_voters,
    stopped_world,
    subsets,
)
from tests.unit.storage.local_logs import content

from kvorum.inspection.recovery.forecast import Loss
from kvorum.inspection.recovery.plan import RecoveryOptions, RecoveryPlan, plan_recovery
from kvorum.inspection.recovery.survivor import RecoveryRefusedError, read_survivor
from kvorum.inspection.recovery.writing import lasting_recovery, recover
from kvorum.raft import ReplicaKey
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.world import World
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.records import read_batches

FIXED_SEEDS = range(1, 13)
FRESH_SEEDS = 3
NODES_MAX = 5
EXECUTED_SHARE = 0.3
OPTIONS = RecoveryOptions(address=("host", 9093), allows_observer=True)


@pytest.mark.slow
def test_what_is_lost_is_what_was_forecast() -> None:
    """The worlds show every kind of forecast; otherwise this would show little."""
    seen: Counter[str] = Counter()
    for seed in FIXED_SEEDS:
        seen += check_world(seed)
    wanted = [
        Loss.NONE.name,
        Loss.NONE_UNLESS_VOTERS_CHANGED.name,
        Loss.POSSIBLE.name,
        "No recovery is needed",
        "unproven",
        "lost something",
    ]
    assert [kind for kind in wanted if not seen[kind]] == [], seen


@pytest.mark.parametrize("number", range(FRESH_SEEDS))
def test_what_is_lost_in_a_new_world_is_what_was_forecast(number: int) -> None:
    seed = secrets.randbelow(2**40)
    try:
        check_world(seed)
    except AssertionError as error:
        raise AssertionError(f"the world of seed {seed}") from error


def check_world(seed: int) -> Counter[str]:
    """Stop a world somewhere in its faulty phase, and recover from every subset of its nodes."""
    random = Random(seed)
    world = stopped_world(seed, random.uniform(2_000, 20_000))
    kill_all(world, random=random)
    name_directories(world)
    seen: Counter[str] = Counter()
    readable = [node for node in world.quorum.nodes.values() if is_readable(world, node)]
    for nodes in subsets(readable[:NODES_MAX]):
        survivors = read(world, nodes)
        try:
            plan = plan_recovery(survivors, OPTIONS)
        except RecoveryRefusedError as error:
            seen[str(error).split(":")[0][:30]] += 1
            continue
        check_forecast(world, plan)
        seen[plan.forecast.loss.name] += 1
        seen["unproven"] += plan.forecast.unproven_count > 0
        seen["lost something"] += any(
            not keeps(plan.forecast, batch.base_offset, batch.epoch)
            for batch in world.around.properties.shared.committed
        )
        if random.random() < EXECUTED_SHARE:
            check_execution(world, plan, nodes)
    return seen


def is_readable(world: World, node: SimulatedNode) -> bool:
    """Return whether a disk can be read; only damaged and empty ones may be refused."""
    if node.is_barred or not node.disk.inspect().exists(node.settings.directory):
        return False
    try:
        survivors = read(world, [node])
    except RecoveryRefusedError:
        assert node.is_damaged or node.disk.damaged_kinds
        return False
    return not node.is_damaged and bool(survivors[0].voters.voters)


def check_forecast(world: World, plan: RecoveryPlan) -> None:
    """Compare a forecast with everything that any node has ever known to be committed."""
    forecast = plan.forecast
    shared = world.around.properties.shared
    assert forecast.committed.end.offset <= shared.committed_end
    lost = 0
    held = batches_of(world.quorum.nodes[plan.chosen.key.id])
    start = min(held, default=plan.chosen.end.offset)
    for batch in shared.committed:
        is_held = batch.last_offset < max(
            start, 0 if plan.chosen.snapshot is None else plan.chosen.snapshot.offset
        ) or held.get(batch.base_offset) == (batch.epoch, batch.crc)
        assert keeps(forecast, batch.base_offset, batch.epoch) == is_held, batch
        assert keeps(forecast, batch.last_offset, batch.epoch) == is_held, batch
        lost += not is_held
    if lost:
        assert forecast.loss is not Loss.NONE
    if forecast.loss is Loss.CERTAIN:
        assert lost


def batches_of(node: SimulatedNode) -> dict[int, tuple[int, int]]:
    """Return epoch and checksum of each batch that a node's log would start with, by offset."""
    files = copied(node).mount()
    log = MetadataLog.open(node.settings.directory, files=files, config=node.settings.log, now_ms=0)
    return {
        batch.base_offset: (batch.partition_leader_epoch, batch.crc)
        for batch in read_batches(b"".join(content(log.local_log)))
    }


def check_execution(world: World, plan: RecoveryPlan, nodes: Sequence[SimulatedNode]) -> None:
    """Recover on a copy of the disk: the log is kept to the byte, and the node is alone."""
    node = next(each for each in nodes if each.node_id == plan.chosen.key.id)
    disk = copied(node)
    before = MetadataLog.open(
        node.settings.directory, files=copied(node).mount(), config=node.settings.log, now_ms=0
    )
    recover(plan, OPERATOR, disk.mount(), now_ms=1)
    disk.crash(is_power_cut=True)
    again = read_survivor(directory_of(node), disk.inspect(), static_voters=static_voters(world))
    record = lasting_recovery(again, disk.inspect())
    assert record is not None
    assert record.is_done
    assert again.election is not None
    assert again.election.leader_epoch == plan.epoch
    after = MetadataLog.open(
        node.settings.directory, files=disk.mount(), config=node.settings.log, now_ms=0
    )
    if plan.is_dynamic:
        assert again.voters.is_only_voter(ReplicaKey(node.node_id, node.directory_id))
        assert again.end.epoch == plan.epoch
        assert after.local_log.log_start_offset == before.local_log.log_start_offset
        assert after.local_log.log_end_offset == plan.chosen.end.offset + 3
        assert b"".join(content(after.local_log)).startswith(b"".join(content(before.local_log)))
    else:
        assert b"".join(content(after.local_log)) == b"".join(content(before.local_log))
        assert again.election.voters == (node.node_id,)
