"""A node as a process of its own: its event loop, its signals, its end."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from kvorum.node.errors import NodeFailedError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.open_file_limit import raise_descriptor_limit
from kvorum.node.tasks import cancel_and_wait

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAME_ORDER_SECONDS = 0.2
"""A signal that follows another one sooner is of the same order: some programs that end processes
send theirs to the process and to its group."""
_log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Runnable(Protocol):
    """A node, or several nodes that start and stop together."""

    async def start(self) -> None:
        """Start; return once it serves."""
        ...

    async def stop(self) -> None:
        """Do a controlled shutdown. May be repeated."""
        ...

    def end_waits(self) -> None:
        """Have `stop` wait for no other node, whether it is under way or comes later."""
        ...

    async def failed(self) -> NodeFailedError:
        """Wait until it cannot continue, and return the reason."""
        ...


class StopSignals:
    """SIGTERM and SIGINT to this process: the first asks for a stop, the second ends its waits."""

    def __init__(self, node: Runnable) -> None:
        self.asked = asyncio.Event()
        """Set by the first."""
        self.second: signal.Signals | None = None
        """The second, None before it came."""
        self._node = node
        self._asked_at = 0.0
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, lambda one: self.take(one, now=loop.time()), number)

    def take(self, number: signal.Signals, *, now: float) -> None:
        """Act on a signal that has come at `now`, in seconds of the event loop's clock."""
        if not self.asked.is_set():
            _log.info(LogEvent("A signal asks for a stop", signal=number.name))
            self._asked_at = now
            self.asked.set()
        elif self.second is None and now - self._asked_at >= SAME_ORDER_SECONDS:
            _log.warning(
                LogEvent("A second signal: the stop waits for no other node", signal=number.name)
            )
            self.second = number
            self._node.end_waits()


def run_in_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` in a new event loop: uvloop's if it is installed."""
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


async def run_until_stopped(
    node: Runnable, *, when_started: Callable[[], Awaitable[None]] | None = None
) -> signal.Signals | None:
    """Start a node and run it until SIGTERM or SIGINT asks for a controlled shutdown.

    Returns the second signal, which ended the waits of the shutdown, None if there was one signal.
    `when_started` runs beside the node once it serves. Raises NodeStartError, StorageError, and
    NodeFailedError if the node cannot continue.
    """
    signals = StopSignals(node)
    asked = asyncio.create_task(signals.asked.wait())
    try:
        starting = asyncio.create_task(node.start())
        await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            await cancel_and_wait(starting)
        else:
            await starting
            await _run(node, asked, when_started)
    finally:
        asked.cancel()
    return signals.second


async def _run(
    node: Runnable, asked: asyncio.Task[bool], when_started: Callable[[], Awaitable[None]] | None
) -> None:
    failing = asyncio.create_task(node.failed())
    beside = asyncio.ensure_future(when_started()) if when_started is not None else None
    try:
        await asyncio.wait({failing, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if beside is not None:
            await cancel_and_wait(beside)
        stopping = asyncio.create_task(node.stop())
        # The log may fail during the controlled shutdown. A node that has failed before does none,
        # and what it closes must not be interrupted.
        if not failing.done():
            await asyncio.wait({stopping, failing}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                await cancel_and_wait(stopping)
                stopping = asyncio.create_task(node.stop())
        await stopping
    if failing.done():
        raise failing.result()
    failing.cancel()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - an optional extra
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
