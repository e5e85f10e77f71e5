"""A TCP balancer before a quorum: one address, and behind it whoever it chooses at the moment.

It knows nothing of leaders, nor of who is alive: as a virtual IP or a layer-4 balancer in front of
all controllers it sends a new connection to the next of its targets, and drops the connections it
carries when it changes its mind.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import cycle
from types import TracebackType
from typing import Self

from tests.support.waiting import PATIENCE_S

CHUNK_BYTES = 65536
CONNECT_TIMEOUT_S = 5.0


class Balancer:
    """Listens on a port of its own; as a context it forwards, once it is pointed at ports."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._ports: tuple[int, ...] = ()
        self._next: Iterator[int] = cycle(self._ports)
        self._carried: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.forwarded: list[int] = []

    @property
    def address(self) -> str:
        """Where clients find the quorum: ``host:port``."""
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A thread that waits for connections is woken by the shutdown, not by closing.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._drop()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a connection of the balancer hangs"

    def point_at(self, ports: Sequence[int]) -> None:
        """Change its mind: forward to these in turns from now on, and drop what it carries."""
        with self._lock:
            self._ports = tuple(ports)
            self._next = cycle(ports)
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            carried, self._carried = self._carried, set()
        for one in carried:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._begin(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        with self._lock:
            port = next(self._next)
        try:
            server = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        with client, server:
            with self._lock:
                # It may have changed its mind while the connection was made.
                if port not in self._ports:
                    return
                self.forwarded.append(port)
                self._carried |= {client, server}
            back = threading.Thread(target=_pump, args=[server, client], daemon=True)
            back.start()
            _pump(client, server)
            back.join()
            with self._lock:
                self._carried -= {client, server}


def _pump(source: socket.socket, destination: socket.socket) -> None:
    """Carry bytes until one of the two ends, and end the other."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            destination.sendall(data)
    for one in (source, destination):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
