"""Rubbish that costs a node time or memory: its sender is cut off, everybody else is served."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient, sized_frame
from tests.support.resources import Memory
from tests.support.topics import create, create_request, read_topics, wait_until_served

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.usefixtures("shared_process")

MIB = 1024 * 1024


@pytest.fixture
def memory(shared_process: NodeProcess) -> Memory:
    return Memory(shared_process.pid)


@pytest.fixture
def bystander(shared: Node) -> Iterator[RawClient]:
    """A client that was there before, and has to be served still when the test is over."""
    with RawClient(shared.broker) as client:
        yield client
        software = client.ask(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
        assert software.error_code == ErrorCode.NONE
    wait_until_served(shared.broker)


@pytest.mark.usefixtures("bystander")
def test_a_good_request_with_flipped_bits(shared: Node) -> None:
    """Such a request ends with an answer, or with the end of its connection."""
    before = read_topics(shared.broker)
    for request, version in ((create_request([]), 7), (MetadataRequest(topics=None), 12)):
        good = sized_frame(request, version)[4:]
        for position in range(len(good) * 8):
            bad = bytearray(good)
            bad[position // 8] ^= 1 << position % 8
            with RawClient(shared.broker) as client:
                client.send_frame(bytes(bad))
                # So that a request that came out longer than its frame ends as well.
                client.socket.shutdown(socket.SHUT_WR)
                client.read_frame()
    assert read_topics(shared.broker) == before


@pytest.mark.usefixtures("bystander")
def test_half_frames_and_resets(shared: Node) -> None:
    frame = sized_frame(create_request(["never"]), 7)
    for size in range(len(frame)):
        with RawClient(shared.broker) as client:
            client.send_bytes(frame[:size])
            if size % 2:
                client.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
    assert "never" not in read_topics(shared.broker)


@pytest.mark.usefixtures("bystander")
def test_a_client_that_never_reads(shared: Node, memory: Memory) -> None:
    """Unread answers are not kept: the node stops reading the client's requests."""
    frame = sized_frame(ApiVersionsRequest("deaf", "1"), 4)
    before = memory.resident_bytes()
    with RawClient(shared.broker) as deaf:
        deaf.socket.settimeout(1)
        sent = 0
        with suppress(TimeoutError):
            while sent < 64 * MIB:
                sent += deaf.socket.send(frame * 2000)
        assert sent < 64 * MIB, "the node took everything in"
        wait_until_served(shared.broker)
        assert memory.resident_bytes() - before < 16 * MIB


@pytest.mark.usefixtures("bystander")
def test_a_large_request_of_nothing_takes_bounded_memory(shared: Node, memory: Memory) -> None:
    """A decoder that believed its counts would make millions of objects of it."""
    size = 8 * MIB
    body = struct.pack(">hhih", ApiKey.CREATE_TOPICS, 2, 1, -1) + struct.pack(">i", size // 16)
    before = memory.peak_bytes()
    with RawClient(shared.broker) as client:
        client.send_frame(body + bytes(size))
        client.read_frame()
    grown = memory.peak_bytes() - before
    # The frame in the buffer and on its own, and what decoding may take: 4 times it and 16 MiB.
    assert grown < 7 * size + 16 * MIB, f"{grown / MIB:.0f} MiB for {size / MIB:.0f} MiB"


def test_after_all_that_the_node_works(shared: Node) -> None:
    assert create(shared.broker, "after-all-that") == [ErrorCode.NONE]
