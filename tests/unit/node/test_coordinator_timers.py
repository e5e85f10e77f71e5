"""The timers of a coordinator: set again and again, they ring once, at the last deadline."""

from dataclasses import dataclass
from random import Random

from kvorum.coordinator.effects import CancelTimer, SetTimer, Timeout
from kvorum.node.broker.coordinator.timers import CoordinatorTimer
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime


@dataclass(frozen=True, slots=True)
class Named:
    """A timeout with a number, by which the ones of a key differ."""

    key: str
    number: int


class Rung:
    """Timers that note what rings, and when."""

    def __init__(self) -> None:
        self.events = Events()
        self.rung: list[tuple[int, Timeout]] = []
        runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.timers = CoordinatorTimer(
            runtime, lambda timer: self.rung.append((int(self.events.now_ms), timer.timeout))
        )

    def set(self, key: str, number: int, delay_ms: int) -> None:
        self.timers.apply(SetTimer(Named(key, number), delay_ms))

    def run_until(self, end_ms: int) -> None:
        while (callback := self.events.take_next(end_ms)) is not None:
            callback()


def test_a_deadline_that_moves_back_is_waited_for() -> None:
    node = Rung()
    node.set("a", 1, 100)
    node.run_until(60)
    node.set("a", 2, 100)
    node.run_until(120)
    node.set("a", 3, 100)
    node.run_until(1_000)
    assert node.rung == [(220, Named("a", 3))]


def test_a_timer_may_leave_the_present_one_as_it_is() -> None:
    node = Rung()
    for number, delay_ms in ((1, 100), (2, 50), (3, 200)):
        node.timers.apply(SetTimer(Named("a", number), delay_ms, keeps_present=True))
    node.run_until(1_000)
    assert node.rung == [(100, Named("a", 1))]


def test_a_deadline_that_moves_ahead_counts_at_once() -> None:
    node = Rung()
    node.set("a", 1, 100)
    node.set("a", 2, 300)
    node.set("a", 3, 50)
    node.set("b", 4, 70)
    node.run_until(1_000)
    assert node.rung == [(50, Named("a", 3)), (70, Named("b", 4))]


def test_a_deadline_that_has_moved_ends_with_its_timer() -> None:
    node = Rung()
    for key in "ab":
        node.set(key, 1, 100)
        node.set(key, 2, 300)
    node.run_until(200)
    node.timers.apply(CancelTimer("a"))
    node.timers.apply(CancelTimer("c"))
    node.run_until(250)
    node.timers.cancel_all()
    node.run_until(1_000)
    assert node.rung == []
    node.set("a", 3, 100)
    node.run_until(2_000)
    assert node.rung == [(1_100, Named("a", 3))]
