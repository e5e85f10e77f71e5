"""A minimal client that asks for a topic until the node has created it."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CREATE_TOPICS_VERSION = 7
RETRY_SECONDS = 0.002
TOPIC_ALREADY_EXISTS = 36


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the node's client listener."""

    host: str
    port: int


def wait_for_first_answer(address: Address, *, deadline_seconds: float) -> float:
    """Return the `time.perf_counter()` at which the first CreateTopics was acknowledged."""
    while time.perf_counter() < deadline_seconds:
        try:
            if create_topic(address):
                return time.perf_counter()
        except OSError:
            pass
        time.sleep(RETRY_SECONDS)
    message = f"no answer from {address.host}:{address.port}"
    raise TimeoutError(message)


def create_topic(address: Address) -> bool:
    """Send one request and return whether the topic exists."""
    topic = CreateTopicsRequest.CreatableTopic("first", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    frame = encode_request_frame(
        request, version=CREATE_TOPICS_VERSION, correlation_id=1, client_id="probe"
    )
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        reply = receive_frame(connection)
    _, response = decode_response_frame(
        reply, response_class=CreateTopicsResponse, version=CREATE_TOPICS_VERSION
    )
    return response.topics[0].error_code in (0, TOPIC_ALREADY_EXISTS)


def receive_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", receive_exactly(connection, 4))
    return receive_exactly(connection, size)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            message = "the node closed the connection"
            raise ConnectionError(message)
        received += chunk
    return bytes(received)
