"""The ends of sockets, which count also where a child process has inherited them.

A socket that is only closed stays open as long as a forked child has it: its port is taken, and the
peer of a connection waits on. One that is shut down first has ended for all processes. So only the
process that made a connection may end it so: a child that cleans up would take it from its parent.
"""

import os
import socket
import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Protocol


class Transport(Protocol):
    """A connection of an event loop, as asyncio's transports describe one."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a fact about the connection; "socket" is its socket."""
        ...


class ConnectionEnd:
    """The end of one connection, for the process that made this object; not for its children."""

    __slots__ = ("_process_id",)

    def __init__(self) -> None:
        self._process_id = os.getpid()

    def shut_down(self, transport: Transport) -> None:
        """End the connection for all processes; what the transport has not yet sent is lost."""
        own: Any = transport.get_extra_info("socket")
        if own is None or os.getpid() != self._process_id:
            return
        # The socket that an event loop gives away may be a stand-in without this operation.
        with suppress(OSError), own.dup() as opened:
            opened.shutdown(socket.SHUT_RDWR)


def end_listening(bound: socket.socket) -> None:
    """Have a bound socket give its port free, whether it listens or not; the caller closes it."""
    with suppress(OSError):
        let_port_be_reused(bound)
    with suppress(OSError):
        bound.shutdown(socket.SHUT_RDWR)


@contextmanager
def ports_held(sockets: Iterable[socket.socket]) -> Generator[None]:
    """Have the ports of bound sockets stay taken while these are closed, until others have them.

    `bind` gets such a port all the same, but nothing that looks for a free one. It is done on Linux
    alone: elsewhere a copy of a socket goes on to listen.
    """
    with ExitStack() as held:
        if sys.platform == "linux":
            for bound in sockets:
                # One that is closed holds nothing.
                with suppress(OSError):
                    held.enter_context(bound.dup())
        yield


def close_listening(bound: socket.socket) -> None:
    """Give the port of a bound socket free, and close the socket. May be repeated."""
    end_listening(bound)
    bound.close()


def let_port_be_reused(bound: socket.socket) -> None:
    """Let a later process have the port while connections of this one linger.

    To be called before the socket listens.
    """
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def keep_port(bound: socket.socket) -> None:
    """Let no other socket bind the port, even one with SO_REUSEADDR, until this one listens."""
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
