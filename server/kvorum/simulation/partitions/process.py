"""The life of one simulated broker: a machine with its disk, and the process on it while one runs.

A process may end in the middle of a call to the disk; it may also stand still for a while, and go
on as if nothing had happened.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from kvorum.simulation.disk import MountedDisk, SimulatedDisk
from kvorum.simulation.disk_faults import CrashedError
from kvorum.simulation.events import Events
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.partitions.settings import ROOTS
from kvorum.simulation.requests import OnAnswer
from kvorum.storage.errors import StorageError
from kvorum.wire.primitives import Message

Action = Callable[[], None]
_NEVER: Final = -1


class Process:
    """The process of a machine, one incarnation after the other.

    `on_crash` is called with what has ended a process.
    """

    def __init__(
        self,
        events: Events,
        random: Random,
        node: SimulatedNode,
        on_crash: Callable[[BaseException], None],
    ) -> None:
        self.node = node
        """The machine's part in the quorum, an observer."""
        self.disks = tuple(SimulatedDisk(random, before_call=self._before_call) for _ in ROOTS)
        self.is_up = False
        self.incarnation = 0
        self.stalled_until_ms = 0.0
        self._events, self._random = events, random
        self._on_crash = on_crash
        self._calls_until_crash = _NEVER
        self.after_turn: Action = _do_nothing
        """Called after each turn of the present process."""

    def begin(self) -> tuple[MountedDisk, ...]:
        """Start a process; return its views of the disks."""
        self.incarnation += 1
        self.is_up = True
        self.stalled_until_ms = 0.0
        self._calls_until_crash = _NEVER
        self.after_turn = _do_nothing
        self.node.start()
        return tuple(disk.mount() for disk in self.disks)

    def end(self, *, is_power_cut: bool) -> None:
        """End the process at once; a power cut also loses what is not flushed, wholly or partly."""
        self.is_up = False
        self.node.crash(is_power_cut=is_power_cut)
        for disk in self.disks:
            disk.crash(is_power_cut=is_power_cut)
            disk.forget_faults()

    def stall(self, duration_ms: float) -> None:
        """Let the process stand still for a while, as a long pause does."""
        self.stalled_until_ms = self._events.now_ms + duration_ms
        self.node.pause()
        incarnation = self.incarnation

        def go_on() -> None:
            if self.incarnation == incarnation and self._events.now_ms >= self.stalled_until_ms:
                self.node.resume()

        self._events.after(duration_ms, go_on)

    def crash_at_call(self, number: int) -> None:
        """End the process before the `number`-th call to the disk from now on."""
        self._calls_until_crash = number

    def guard(self, action: Action) -> Action:
        """Return an action of this incarnation: it waits while that stands still, and ends with it.

        An error of the disk that is not handled ends the process, as it ends a real broker.
        """
        return partial(self._run, self.incarnation, action)

    def turn(self) -> Callable[[Action], None]:
        """Return what runs a callback as this incarnation does; see `guard`."""
        return partial(self._run, self.incarnation)

    def _run(self, incarnation: int, action: Action) -> None:
        if not self.is_up or self.incarnation != incarnation:
            return
        if self._events.now_ms < self.stalled_until_ms:
            self._events.at(self.stalled_until_ms, partial(self._run, incarnation, action))
            return
        try:
            action()
            if self.is_up and self.incarnation == incarnation:
                self.after_turn()
        except (CrashedError, StorageError) as error:
            self._on_crash(error)

    def guard_reply(self, on_answer: OnAnswer) -> OnAnswer:
        """Return a callback for an answer that is one of this incarnation."""
        incarnation = self.incarnation

        def guarded(answer: Message | None) -> None:
            if self.incarnation == incarnation:
                self.guard(lambda: on_answer(answer))()

        return guarded

    def every(self, interval_ms: Callable[[], float], action: Action) -> None:
        """Repeat an action while this process lives."""

        def again() -> None:
            self._events.after(interval_ms(), guarded)
            action()

        guarded = self.guard(again)
        self._events.after(self._random.uniform(0, interval_ms()), guarded)

    def _before_call(self, operation: str, _: object) -> None:
        if self._calls_until_crash != _NEVER:
            self._calls_until_crash -= 1
            if self._calls_until_crash == _NEVER:
                raise CrashedError(operation)


def _do_nothing() -> None:
    pass
