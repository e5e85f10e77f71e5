"""Every way to lose the majority of three and of five: recovered by the command, and started.

The account of what was acknowledged is kept by the writers. What the recovered node then serves
has to be that, less what was forecast as lost.
"""

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from tests.node.raft.cluster import Lab, Replica
from tests.support.lost_quorum import (
    PARTIAL_SNAPSHOT,
    Acknowledged,
    Story,
    export,
    keeps,
    read,
    snapshot_in_the_making,
    static_voters,
    uncommitted_tail,
    voter_change_in_flight,
)

from kvorum.cli import main
from kvorum.inspection.recovery.plan import (
    Forecast,
    Loss,
    RecoveryOptions,
    RecoveryPlan,
    plan_recovery,
)
from kvorum.metadata.address import Address
from kvorum.raft import Destination
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import QuorumKind

Maker = Callable[[QuorumKind, int], Story]
CASES = [
    (maker, kind, count)
    for maker in (uncommitted_tail, snapshot_in_the_making, voter_change_in_flight)
    for kind in (QuorumKind.STATIC, QuorumKind.DYNAMIC)
    for count in (3, 5)
    if maker is not voter_change_in_flight or kind is QuorumKind.DYNAMIC
]


@cache
def story_of(maker: Maker, kind: QuorumKind, count: int) -> Story:
    return maker(kind, count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("maker", "kind", "count"),
    CASES,
    ids=[f"{maker.__name__}-{kind.value}-{count}" for maker, kind, count in CASES],
)
async def test_what_is_served_is_what_was_acknowledged_less_what_was_forecast_as_lost(
    maker: Maker, kind: QuorumKind, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = story_of(maker, kind, count)
    seen: Counter[str] = Counter()
    for size in range(1, count // 2 + 1):
        for nodes in combinations(story.voters, size):
            folder = tmp_path / "-".join(str(node.node_id) for node in nodes)
            forecast, replica, lab = await recovered(story, nodes, folder)
            capsys.readouterr()
            lost = [one for one in story.acknowledged if not is_served(one, replica)]
            assert lost == [
                one for one in story.acknowledged if not keeps(forecast, one.offset, one.epoch)
            ]
            assert not lost or forecast.loss is Loss.POSSIBLE
            await replica.commit(b"it goes on")
            await lab.close()
            seen["lost" if lost else "nothing lost"] += 1
            seen["unproven"] += forecast.unproven_count > 0
    assert len(story.acknowledged) > 50
    assert seen["nothing lost"]
    assert seen["unproven"]
    assert seen["lost"] or maker is voter_change_in_flight, "no story of a loss"


def is_served(one: Acknowledged, replica: Replica) -> bool:
    """Return whether a value is there, from the log or from a snapshot."""
    values = replica.listener.values
    return one.value in values or b"%d|%s" % (one.offset, one.value) in values


async def recovered(
    story: Story, nodes: tuple[SimulatedNode, ...], folder: Path
) -> tuple[Forecast, Replica, Lab]:
    """Recover with the command from the directories of some nodes, and start the chosen one."""
    plan = plan_recovery(read(story.world, nodes), RecoveryOptions())
    run_command(story, nodes, folder, plan)
    lab = Lab(folder)
    node = story.world.quorum.nodes[plan.chosen.key.id]
    replica = await lone_replica(lab, story, node, folder / node.host)
    await replica.lead()
    assert replica.node.epoch == plan.epoch + 1
    return plan.forecast, replica, lab


def run_command(
    story: Story, nodes: tuple[SimulatedNode, ...], folder: Path, plan: RecoveryPlan
) -> None:
    """Run the command without --execute, with it, and once more."""
    directories = ",".join(str(export(node, folder)) for node in nodes)
    assert main(["quorum", "recover", "--directories", directories]) == 0
    assert not list(folder.glob("*/kvorum-quorum-recovery-*"))
    assert main(["quorum", "recover", "--directories", directories, "--execute"]) == 0
    assert main(["quorum", "recover", "--directories", directories, "--execute"]) == 0
    (record,) = folder.glob("*/kvorum-quorum-recovery-*.json")
    fields = json.loads(record.read_text())
    assert (fields["state"], fields["nodeId"]) == ("done", plan.chosen.key.id)
    assert fields["forecast"]["keptBelowOffset"] == plan.forecast.kept.offset


async def lone_replica(lab: Lab, story: Story, node: SimulatedNode, directory: Path) -> Replica:
    server = await lab.server()
    is_static = bool(static_voters(story.world).voters)
    return lab.add(
        Replica(
            node.node_id,
            directory,
            server,
            log=node.settings.log,
            directory_id=node.directory_id,
            static_voters=(Destination(node.node_id, "127.0.0.1", server.port),)
            if is_static
            else (),
            bootstrap_servers=() if is_static else (Address("127.0.0.1", server.port),),
        )
    )


async def test_the_stories_hold_what_they_are_about() -> None:
    for kind in (QuorumKind.STATIC, QuorumKind.DYNAMIC):
        story = story_of(snapshot_in_the_making, kind, 3)
        survivors = read(story.world, story.voters)
        assert all(one.snapshot is not None for one in survivors)
        assert any(one.start_offset > 0 for one in survivors)
        files = story.voters[0].disk.inspect()
        assert files.exists(story.voters[0].settings.directory / PARTIAL_SNAPSHOT)
    story = story_of(voter_change_in_flight, QuorumKind.DYNAMIC, 3)
    in_flight = [
        one for one in read(story.world, story.voters) if one.recorded[-1].end > one.committed.end
    ]
    assert [len(one.voters.voters) for one in in_flight] == [4]
