"""A client that sends ready-made requests, so that nearly all of the time is the server's.

Each connection has one request at a time: the next one is sent when the response is there.
"""

import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Final

from kvorum.wire.headers import encode_request_frame, with_size
from kvorum.wire.primitives import Message

READ_BYTES: Final = 64 * 1024
SILENCE_S_MAX: Final = 30.0
_SIZE: Final = struct.Struct(">i")


def framed(request: Message, version: int) -> bytes:
    """Return a request as it goes to the socket, its size first."""
    return with_size(
        encode_request_frame(request, version=version, correlation_id=1, client_id="one-of-many")
    )


def ask(servers: str, request: bytes) -> bytes:
    """Return the frame of one response, without its size."""
    with connected(servers) as connection:
        connection.settimeout(SILENCE_S_MAX)
        connection.sendall(request)
        return read_frame(connection)


def answered_per_s(servers: str, request: bytes, *, clients: int, seconds: float) -> float:
    """Return how many requests of that many clients are answered in a second."""
    connections = [connected(servers) for _ in range(clients)]
    try:
        answer_times_s = answered(connections, request, seconds=seconds)
    finally:
        for connection in connections:
            connection.close()
    return len(answer_times_s) / seconds


def answered(
    connections: Sequence[socket.socket], request: bytes, *, seconds: float
) -> list[float]:
    """Return how long each answer took, in seconds, while all connections ask for that time."""
    poll = select.epoll()
    waiting = {connection.fileno(): connection for connection in connections}
    received = {number: bytearray() for number in waiting}
    for number, connection in waiting.items():
        poll.register(number, select.EPOLLIN)
        connection.sendall(request)
    times_s: list[float] = []
    asked = dict.fromkeys(waiting, time.perf_counter())
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        ready = poll.poll(SILENCE_S_MAX)
        if not ready:
            raise TimeoutError(f"no response of {len(connections)} within {SILENCE_S_MAX} s")
        for number, _ in ready:
            connection = waiting[number]
            frame = received[number]
            frame += _read(connection)
            if _missing_bytes(frame) > 0:
                continue
            frame.clear()
            now = time.perf_counter()
            times_s.append(now - asked[number])
            asked[number] = now
            connection.sendall(request)
    poll.close()
    return times_s


def read_frame(connection: socket.socket) -> bytes:
    """Return the next response without its size, where no other one follows."""
    received = bytearray()
    while _missing_bytes(received) > 0:
        received += _read(connection)
    return bytes(received[_SIZE.size :])


def connected(servers: str) -> socket.socket:
    """Return a connection in plain text."""
    host, _, port = servers.partition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _read(connection: socket.socket) -> bytes:
    data = connection.recv(READ_BYTES)
    if not data:
        raise ConnectionError("the server has closed a connection")
    return data


def _missing_bytes(received: bytearray) -> int:
    """Return how many bytes of a frame are yet to come; at least one while its size is unknown."""
    if len(received) < _SIZE.size:
        return 1
    size: int
    (size,) = _SIZE.unpack_from(received)
    return _SIZE.size + size - len(received)
