"""A node as a process of its own: its event loop, and its life from the start to the stop."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from kvorum.node.errors import NodeFailedError
from kvorum.node.open_file_limit import raise_descriptor_limit
from kvorum.node.stop_signals import STOP_SIGNALS, StopSignals
from kvorum.node.tasks import cancel_and_wait

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
    `when_started` runs beside the node once it serves; its error stops the node, and is raised.
    Raises NodeStartError, StorageError, and NodeFailedError if the node cannot continue.
    """
    loop = asyncio.get_running_loop()
    order = asyncio.Event()
    signals = StopSignals(stop=order.set, end_waits=node.end_waits)
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, lambda one: signals.take(one, now=loop.time()), number)
    asked = asyncio.create_task(order.wait())
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
    beside = [] if when_started is None else [asyncio.create_task(_until_it_fails(when_started))]
    try:
        await asyncio.wait({failing, asked, *beside}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await cancel_and_wait(*beside)
        finally:
            await _stop(node, failing)
    if failing.done():
        raise failing.result()
    failing.cancel()


async def _until_it_fails(work: Callable[[], Awaitable[None]]) -> None:
    """Do `work` and go on waiting: only its error ends this, or a cancellation."""
    await work()
    await asyncio.get_running_loop().create_future()


async def _stop(node: Runnable, failing: asyncio.Task[NodeFailedError]) -> None:
    """Stop a node in good order, unless its log fails meanwhile."""
    stopping = asyncio.create_task(node.stop())
    # The log may fail during the controlled shutdown. A node that has failed before does none, and
    # what it closes must not be interrupted.
    if not failing.done():
        await asyncio.wait({stopping, failing}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            await cancel_and_wait(stopping)
            stopping = asyncio.create_task(node.stop())
    await stopping


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - an optional extra
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
