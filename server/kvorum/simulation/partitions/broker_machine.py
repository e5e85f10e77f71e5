"""The machine of a simulated broker: the disks of its logs, and the faults that strike it.

Its process is the one of its node in the quorum, which has the replica of the metadata log too. It
may end in the middle of a call to a disk; it may also stand still for a while, and go on as if
nothing had happened.
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
from kvorum.simulation.process import Process
from kvorum.simulation.requests import OnAnswer
from kvorum.storage.errors import StorageError

Action = Callable[[], None]
_NEVER: Final = -1


class BrokerMachine:
    """A machine on which a broker runs, in one process after the other.

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
        """Its part in the quorum, an observer."""
        self.disks = tuple(SimulatedDisk(random, before_call=self._before_call) for _ in ROOTS)
        self.stalled_until_ms = 0.0
        self._events, self._random = events, random
        self._on_crash = on_crash
        node.on_failure = on_crash
        self._calls_until_crash = _NEVER
        self.after_turn: Action = _do_nothing
        """Called after each turn of the present process."""

    def start(self) -> tuple[MountedDisk, ...]:
        """Start a process; return its views of the disks."""
        self.stalled_until_ms = 0.0
        self._calls_until_crash = _NEVER
        self.after_turn = _do_nothing
        self.node.start()
        return tuple(disk.mount() for disk in self.disks)

    def end(self, *, is_power_cut: bool) -> None:
        """End the process at once; a power cut also loses what is not flushed, wholly or partly."""
        self.node.crash(is_power_cut=is_power_cut)
        self.node.disk.forget_faults()
        for disk in self.disks:
            disk.crash(is_power_cut=is_power_cut)
            disk.forget_faults()

    def stall(self, duration_ms: float) -> None:
        """Let the process stand still for a while, as a long pause does."""
        self.stalled_until_ms = self._events.now_ms + duration_ms
        self.node.pause()
        process = self.node.process

        def go_on() -> None:
            if self.node.process is process and self._events.now_ms >= self.stalled_until_ms:
                self.node.resume()

        self._events.after(duration_ms, go_on)

    def crash_at_call(self, number: int) -> None:
        """End the process before the `number`-th call to a disk from now on."""
        self._calls_until_crash = number

    def guard(self, action: Action) -> Action:
        """Return an action of this process: it waits while that stands still, and ends with it.

        An error of a disk that is not handled ends the process, as it ends a real broker.
        """
        return partial(self.turn(), action)

    def turn(self) -> Callable[[Action], None]:
        """Return what runs a callback as this process does; see `guard`."""
        process = self.node.process

        def run(action: Action) -> None:
            if process is not None:
                process.while_running(partial(self._run, process, action))

        return run

    def _run(self, process: Process, action: Action) -> None:
        try:
            action()
            if not process.is_dead:
                self.after_turn()
        except (CrashedError, StorageError) as error:
            self._on_crash(error)

    def guard_reply(self, on_answer: OnAnswer) -> OnAnswer:
        """Return a callback for an answer that is one of this process."""
        turn = self.turn()
        return lambda answer: turn(partial(on_answer, answer))

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
