"""The end of one client's connection, for those who act then (ConnectionDisconnectListener)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

DisconnectListener: TypeAlias = Callable[["DisconnectListeners"], None]


class DisconnectListeners:
    """The listeners of one connection, which they know it by."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        # In the order in which they came; a set would call them in any order.
        self._listeners: dict[DisconnectListener, None] = {}

    def add(self, listener: DisconnectListener) -> None:
        """Call `listener` when the connection has ended; one that is added twice is called once."""
        self._listeners[listener] = None

    def on_disconnect(self) -> None:
        """Call the listeners: the connection has ended."""
        listeners = tuple(self._listeners)
        self._listeners.clear()
        for listener in listeners:
            listener(self)
