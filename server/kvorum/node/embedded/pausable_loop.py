"""An event loop in which some of the work can be paused, as SIGSTOP pauses a process.

Work that begins inside of `behind(gate)` belongs to the gate, with all tasks, timers and sockets
that it makes. While the gate is closed, none of its callbacks runs and none of its sockets is
read, written or accepted from: the system keeps what arrives. Time goes on, so that the timers that
are overdue by the end run then, in their order.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

Arguments = TypeVarTuple("Arguments")
Handle = TypeVar("Handle", bound=asyncio.Handle)


class Gate:
    """The gate that some work has to pass at each of its steps."""

    def __init__(self) -> None:
        self.is_closed = False
        self.held: list[_Passage] = []
        """The steps that came while it was closed, in order."""


_GATE: ContextVar[Gate | None] = ContextVar("kvorum_gate", default=None)


@contextmanager
def behind(gate: Gate) -> Generator[None]:
    """Let the work that begins inside of this block belong to a gate."""
    token = _GATE.set(gate)
    try:
        yield
    finally:
        _GATE.reset(token)


class _Passage:
    """A callback that runs if its gate is open, and is held there if it is closed."""

    __slots__ = ("arguments", "callback", "context", "gate", "handle")

    def __init__(
        self,
        gate: Gate,
        callback: Callable[..., object],
        arguments: tuple[object, ...],
        context: Context,
    ) -> None:
        self.gate = gate
        self.callback = callback
        self.arguments = arguments
        self.context = context
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        if self.gate.is_closed:
            self.gate.held.append(self)
        elif self.handle is None or not self.handle.cancelled():
            self.callback(*self.arguments)


class PausableEventLoop(asyncio.SelectorEventLoop):
    """The usual event loop, with gates that can be closed and opened."""

    def __init__(self) -> None:
        self._sockets = _GatedSelector()
        super().__init__(self._sockets)

    def close_gate(self, gate: Gate) -> None:
        """Let nothing pass; does nothing where the gate is closed."""
        if not gate.is_closed:
            gate.is_closed = True
            self._sockets.suspend(gate)

    def open_gate(self, gate: Gate) -> None:
        """Let everything pass again, what was held first; does nothing where the gate is open."""
        if not gate.is_closed:
            return
        gate.is_closed = False
        held, gate.held = gate.held, []
        for passage in held:
            super().call_soon(passage, context=passage.context)
        self._sockets.resume(gate)

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call back in the next turn in which the gate of the caller is open."""
        passage = _passage(callback, args, context)
        if passage is None:
            return super().call_soon(callback, *args, context=context)
        return _handled(passage, super().call_soon(passage, context=passage.context))

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call back as `call_soon` does; any thread may ask."""
        passage = _passage(callback, args, context)
        if passage is None:
            return super().call_soon_threadsafe(callback, *args, context=context)
        return _handled(passage, super().call_soon_threadsafe(passage, context=passage.context))

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at a time of the loop's clock, or once the caller's gate is open after it."""
        passage = _passage(callback, args, context)
        if passage is None:
            return super().call_at(when, callback, *args, context=context)
        return _handled(passage, super().call_at(when, passage, context=passage.context))


def _passage(
    callback: Callable[..., object], arguments: tuple[Any, ...], context: Context | None
) -> _Passage | None:
    """Return the passage of a callback through the gate of its context, None without a gate."""
    gate = _GATE.get() if context is None else context.get(_GATE)
    if gate is None:
        return None
    return _Passage(gate, callback, arguments, copy_context() if context is None else context)


def _handled(passage: _Passage, handle: Handle) -> Handle:
    """Return the handle of a passage, which is not called any more once that is cancelled."""
    passage.handle = handle
    return handle


class _GatedSelector(selectors.BaseSelector):
    """A selector that leaves out the sockets of closed gates; their registrations stay."""

    def __init__(self) -> None:
        self._watched = selectors.DefaultSelector()
        self._keys: dict[FileDescriptorLike, selectors.SelectorKey] = {}
        self._gates: dict[int, Gate] = {}

    def suspend(self, gate: Gate) -> None:
        """Watch the sockets of a gate no longer."""
        for descriptor in self._behind(gate):
            self._watched.unregister(descriptor)

    def resume(self, gate: Gate) -> None:
        """Watch the sockets of a gate again."""
        for descriptor in self._behind(gate):
            self._watch(self._keys[descriptor])

    def _behind(self, gate: Gate) -> list[int]:
        return [descriptor for descriptor, its in self._gates.items() if its is gate]

    def _watch(self, key: selectors.SelectorKey) -> None:
        self._watched.register(key.fd, key.events, key.data)

    def _is_watched(self, descriptor: int) -> bool:
        gate = self._gates.get(descriptor)
        return gate is None or not gate.is_closed

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        """Watch a socket, which belongs to the gate of the caller."""
        descriptor = _descriptor(fileobj)
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} is already registered")
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        gate = _GATE.get()
        if gate is None or not gate.is_closed:
            self._watch(key)
        self._keys[descriptor] = key
        if gate is not None:
            self._gates[descriptor] = gate
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Forget a socket."""
        descriptor = _descriptor(fileobj)
        key = self._keys.pop(descriptor)
        if self._is_watched(descriptor):
            self._watched.unregister(descriptor)
        self._gates.pop(descriptor, None)
        return key

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        """Change what a socket is watched for; its gate stays."""
        descriptor = _descriptor(fileobj)
        key = self._keys[descriptor]._replace(events=events, data=data)
        self._keys[descriptor] = key
        if self._is_watched(descriptor):
            self._watched.modify(descriptor, events, data)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the sockets that are ready and not behind a closed gate."""
        ready = self._watched.select(timeout)
        return [(self._keys[key.fd], events) for key, events in ready]

    def close(self) -> None:
        """Forget all sockets."""
        self._watched.close()
        self._keys.clear()
        self._gates.clear()

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        """Return the registrations by descriptor."""
        return self._keys


def _descriptor(fileobj: FileDescriptorLike) -> int:
    return fileobj if isinstance(fileobj, int) else fileobj.fileno()
