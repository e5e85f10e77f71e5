"""The machine of a simulated broker, whose process has a replica of the metadata log too."""

from collections.abc import Callable
from functools import partial

from kvorum.simulation.events import Events
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.cluster import Cluster
from kvorum.simulation.world import World

STARTED_MS = 100.0


def _started() -> tuple[Events, BrokerMachine]:
    world = World(seed=1, kind=WorldKind.BROKERS)
    assert isinstance(world.inhabitants, Cluster)
    machine = next(iter(world.inhabitants.brokers.values())).machine
    machine.start()
    world.around.events.run_until(STARTED_MS)
    return world.around.events, machine


def _turn_of_replica(machine: BrokerMachine) -> Callable[[Callable[[], None]], None]:
    assert machine.node.process is not None
    return machine.node.process.turn


def test_a_stalled_process_goes_on_with_what_came_for_its_broker_and_its_replica() -> None:
    events, machine = _started()
    heard = list[str]()
    machine.stall(50)
    machine.guard(partial(heard.append, "broker"))()
    _turn_of_replica(machine)(partial(heard.append, "replica"))
    machine.guard(partial(heard.append, "broker again"))()
    events.run_until(STARTED_MS + 49)
    assert heard == []
    events.run_until(STARTED_MS + 51)
    assert heard == ["broker", "replica", "broker again"]


def test_a_process_that_ends_while_it_is_stalled_does_nothing_more() -> None:
    events, machine = _started()
    heard = list[str]()
    of_ended = machine.guard(partial(heard.append, "ended"))
    machine.stall(50)
    of_ended()
    machine.end(is_power_cut=False)
    machine.start()
    of_ended()
    machine.guard(partial(heard.append, "next"))()
    events.run_until(STARTED_MS + 51)
    assert heard == ["next"]


def test_a_stall_is_over_when_the_last_one_is() -> None:
    events, machine = _started()
    heard = list[str]()
    machine.stall(50)
    machine.stall(90)
    machine.guard(partial(heard.append, "broker"))()
    events.run_until(STARTED_MS + 89)
    assert heard == []
    events.run_until(STARTED_MS + 91)
    assert heard == ["broker"]
