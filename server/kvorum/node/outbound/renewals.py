"""The tokens and key sets that a node has from elsewhere, each had again in its turn."""

import logging
from collections.abc import Iterable
from functools import partial
from threading import Event
from typing import Final

from kvorum.node.coroutines import ClosableTasks, Pulse, in_thread
from kvorum.node.errors import NodeStartError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.security.renewable import Renewable, RenewalFailedError

_log: Final = logging.getLogger(__name__)


class Renewals:
    """Has everything that was started again when it is due, in threads, until `close`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tasks = ClosableTasks()
        self._is_closed = Event()

    async def start(self, renewables: Iterable[Renewable]) -> None:
        """Have these for the first time; as Kafka's node, raises NodeStartError without one."""
        for one in renewables:
            try:
                await self._renew(one)
            except RenewalFailedError as error:
                raise NodeStartError(f"The node has no {one.name}: {error}") from error
            pulse = Pulse(self._runtime)
            one.watch(pulse.beat)
            self._tasks.start(self._renew_in_turn(one, pulse))

    def close(self) -> None:
        """Have nothing any more, and end the waits."""
        self._is_closed.set()
        self._tasks.close()

    async def _renew_in_turn(self, one: Renewable, pulse: Pulse) -> None:
        while True:
            await pulse.until(partial(self._is_due, one), one.renew_at_ms - self._wall_ms())
            try:
                await self._renew(one)
            except RenewalFailedError as error:
                _log.warning(LogEvent("Not renewed", what=one.name, reason=str(error)))

    def _is_due(self, one: Renewable) -> bool:
        return one.renew_at_ms <= self._wall_ms()

    async def _renew(self, one: Renewable) -> None:
        await in_thread(self._runtime, partial(one.renew, self._wall_s, self._pause))

    def _wall_ms(self) -> int:
        return self._runtime.wall_ms()

    def _wall_s(self) -> float:
        return self._runtime.wall_ms() / 1000

    def _pause(self, seconds: float) -> None:
        if self._is_closed.wait(seconds):
            raise RenewalFailedError("the node stops")
