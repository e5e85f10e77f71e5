"""The periodic tasks of the controller: when they run, and what happens after an error."""

from collections.abc import Callable
from random import Random

import pytest

from kvorum.metadata.api import RequestError
from kvorum.node.controller.periodic_task_control_manager import (
    FAILURE_PAUSE_MS,
    PeriodicTask,
    PeriodicTaskControlManager,
)
from kvorum.node.errors import NotControllerError
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.error_codes import ErrorCode

INTERVAL_MS = 1000


class World:
    """A task that notes when it runs, and the time in which it does; `results` are its first."""

    def __init__(self, *results: bool | Exception, notes_delays: bool = False) -> None:
        self.events = Events()
        self.held_up: list[Callable[[], None]] = []
        self.is_held_up = False
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=self._turn
        )
        self.ran_at_ms: list[int] = []
        self.delays_ms: list[int] = []
        self._results = list(results)
        note_delay = self._note_delay if notes_delays else None
        task = PeriodicTask("a test", INTERVAL_MS, self._run, note_delay)
        self.epoch: int | None = 1
        self.manager = PeriodicTaskControlManager((task,), self.runtime, epoch=lambda: self.epoch)
        self.manager.start()

    def run(self, until_ms: float) -> list[int]:
        """Let time pass; return when the task has run."""
        while (callback := self.events.take_next(until_ms)) is not None:
            callback()
        return self.ran_at_ms

    def go_on(self) -> None:
        """End a time in which the process had no turn."""
        self.is_held_up = False
        for callback in self.held_up:
            callback()

    def _turn(self, callback: Callable[[], None]) -> None:
        if self.is_held_up:
            self.held_up.append(callback)
        else:
            callback()

    def _note_delay(self, delay_ms: float) -> None:
        self.delays_ms.append(round(delay_ms))

    async def _run(self) -> bool | None:
        self.ran_at_ms.append(round(self.runtime.monotonic_ms()))
        result = self._results.pop(0) if self._results else None
        if isinstance(result, Exception):
            raise result
        return result


def test_a_task_runs_after_each_interval_until_it_is_closed() -> None:
    world = World()
    assert world.run(until_ms=3500) == [1000, 2000, 3000]
    world.manager.close()
    assert len(world.run(until_ms=9000)) == 3


def test_a_task_with_more_to_do_runs_again_at_once() -> None:
    assert World(True, True).run(until_ms=2500) == [1000, 1000, 1000, 2000]


def test_a_task_that_is_refused_pauses_and_one_without_an_active_controller_does_not() -> None:
    refused = RequestError(ErrorCode.POLICY_VIOLATION, "no")
    world = World(NotControllerError("no controller"), refused)
    after_pause_ms = 2000 + FAILURE_PAUSE_MS
    assert world.run(until_ms=after_pause_ms + 10) == [1000, 2000, after_pause_ms]


def test_the_pause_of_a_failed_task_ends_with_the_leadership() -> None:
    world = World(RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert world.run(until_ms=2500) == [1000]
    world.epoch = 2
    assert world.run(until_ms=4500) == [1000, 3000, 4000]


@pytest.mark.parametrize(
    ("notes_delays", "ran_at_ms", "delays_ms"),
    [(True, [3500], [1500, 0]), (False, [2500, 3500], [])],
)
def test_a_late_task_hears_of_its_delay_and_is_left_out_if_it_wants_to(
    notes_delays: bool, ran_at_ms: list[int], delays_ms: list[int]
) -> None:
    world = World(notes_delays=notes_delays)
    world.is_held_up = True
    world.events.after(2500, world.go_on)
    assert world.run(until_ms=4000) == ran_at_ms
    assert world.delays_ms == delays_ms


def test_an_unexpected_error_ends_its_task_and_is_raised_when_it_is_closed() -> None:
    world = World(ValueError("a bug"))
    assert world.run(until_ms=5000) == [1000]
    with pytest.raises(ValueError, match="a bug"):
        world.manager.close()
