"""Random commands for a scenario."""

from __future__ import annotations

from random import Random

from tests.model.scenarios.simulation import Simulation


def stir(simulation: Simulation, random: Random) -> None:
    """Do one random thing to a cluster."""
    node_id = random.choice(sorted(simulation.nodes))
    node = simulation.nodes[node_id]
    chance = random.random()
    if chance < 0.55 and simulation.in_flight:
        simulation.deliver(random.randrange(len(simulation.in_flight)))
    elif chance < 0.60 and simulation.in_flight:
        simulation.drop(random.randrange(len(simulation.in_flight)))
    elif chance < 0.72:
        simulation.flush(node_id)
    elif chance < 0.82:
        simulation.advance(random.choice([1, 20, 100, 700]))
    elif chance < 0.91:
        simulation.propose(node_id, [f"{random.random()}"] * random.randint(1, 3))
    elif chance < 0.93:
        simulation.make_snapshot(node_id)
    elif chance < 0.96:
        simulation.cut ^= {node_id}
    elif node.core is None:
        simulation.start(node_id)
    elif chance < 0.98:
        simulation.crash(node_id)
