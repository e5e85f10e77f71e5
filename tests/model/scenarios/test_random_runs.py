"""Whole quorums under random faults: whatever happens, what was committed stays, in one order.

The simulation itself raises where two nodes commit different records, where an epoch has two
leaders, and where a log does not continue. In the end the faults stop, and the quorum must work.
"""

from random import Random

import pytest
from tests.model.scenarios.script import stir
from tests.model.scenarios.simulation import Simulation

from kvorum.raft.roles import RoleName

STEPS = 400


def calm(simulation: Simulation) -> None:
    """Let the faults stop, and everybody come to rest."""
    simulation.cut.clear()
    for node_id, node in simulation.nodes.items():
        if node.core is None:
            simulation.start(node_id)
    for _ in range(1500):
        simulation.settle(rounds=5)
        simulation.advance(10)


@pytest.mark.parametrize("voter_count", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(15))
def test_committed_records_stay_and_the_quorum_recovers(voter_count: int, seed: int) -> None:
    random = Random(f"{voter_count}-{seed}")
    simulation = Simulation(seed=seed)
    simulation.bring_up(range(1, voter_count + 1))
    simulation.add_observer(9)
    for _ in range(STEPS):
        stir(simulation, random)
    before = list(simulation.committed)
    calm(simulation)
    leaders = [
        node
        for node in simulation.nodes.values()
        if node.core is not None and node.core.role.name is RoleName.LEADER
    ]
    assert len(leaders) == 1
    assert simulation.propose(leaders[0].id, ["last"])
    for _ in range(5):
        simulation.settle(rounds=5)
        simulation.advance(10)
    assert simulation.committed[: len(before)] == before
    for node in simulation.nodes.values():
        assert node.committed == simulation.committed
        assert node.committed[-1].text == "last"


def test_a_run_is_the_same_each_time() -> None:
    traces: list[list[str]] = []
    for _ in range(2):
        trace: list[str] = []
        simulation = Simulation(seed=3, say=trace.append)
        simulation.bring_up([1, 2, 3])
        random = Random(3)
        for _ in range(STEPS):
            stir(simulation, random)
        traces.append(trace)
    assert traces[0] == traces[1]
