"""Clients that cost a node time or memory: each is bounded or cut off, all others are served."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from tests.process.bystander import WORK_MAX_S, Bystander
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient, sized_frame
from tests.support.record_requests import FETCH_VERSION, batch, produce
from tests.support.resources import Memory, wait_until_quiet
from tests.support.topics import (
    create,
    create_request,
    read_topics,
    wait_until_served,
    wait_until_written,
)

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.metadata import MetadataRequest

MIB: Final = 2**20
TOPIC: Final = "large"
RECORD_BYTES: Final = 900_000
RECORD_COUNT: Final = 20
CONSUMERS: Final = 100
REQUESTS_EACH: Final = 20_000
SMALL_BYTES: Final = 15_000
"""So few are read by the node, and not sent out of the file."""
BYTES_EACH_MAX: Final = 320 * 1024
"""Of later requests 64 KiB are read ahead, and the transport reads up to 256 KiB at once."""
MORE_MAX: Final = 8 * MIB
"""The growth by another hundred: what the first ones had is free, if not always for
other processes."""
IDLE_S: Final = 1.0


@pytest.fixture
def node(formatted: Node, tmp_path: Path) -> Node:
    """A node that stays in its cluster."""
    return formatted.copy_to(tmp_path / "node", settings={})


def _frames(max_bytes: int) -> bytes:
    wish = FetchRequest.FetchPartition(0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchRequest.FetchTopic(TOPIC, partitions=[wish])]
    request = FetchRequest(min_bytes=1, max_bytes=max_bytes, topics=topics)
    return sized_frame(request, FETCH_VERSION) * REQUESTS_EACH


def _fill(address: str, records: int, record_bytes: int) -> None:
    assert create(address, TOPIC) == [ErrorCode.NONE]
    wait_until_written(address, TOPIC, batch(b"first"))
    with RawClient(address) as client:
        for _ in range(records):
            assert produce(client, TOPIC, batch(bytes(record_bytes))).error_code == ErrorCode.NONE


@pytest.mark.slow
@pytest.mark.parametrize("max_bytes", [50 * MIB, SMALL_BYTES])
def test_consumers_that_never_read(
    report: Report, node: Node, running: NodeProcess, max_bytes: int
) -> None:
    _fill(node.broker, RECORD_COUNT, RECORD_BYTES if max_bytes > RECORD_BYTES else SMALL_BYTES // 3)
    memory = Memory(running.pid)
    before = memory.resident_bytes()
    with Bystander(node.broker, running.pid) as bystander:
        busy = _be_deaf(node, running, max_bytes)
        grown = memory.peak_bytes() - before
        left = memory.resident_bytes() - before
        _be_deaf(node, running, max_bytes)
        grown_again = memory.peak_bytes() - before
    report(
        f"{CONSUMERS} consumers that asked {REQUESTS_EACH} times for {max_bytes} bytes and read "
        f"nothing: the node grew from {before / MIB:.1f} MiB by {grown / MIB:.1f} MiB, to "
        f"{left / MIB:.1f} MiB once they were gone and {grown_again / MIB:.1f} MiB with others, "
        f"and used {busy * 100:.1f} % of a processor; the slowest of {bystander.answer_count} "
        f"answers to another client took {bystander.slowest_s * 1000:.0f} ms"
    )
    assert grown < CONSUMERS * BYTES_EACH_MAX
    assert grown_again < grown + MORE_MAX
    assert bystander.most_work_s < WORK_MAX_S
    assert running.terminate().exit_code == 0


def _be_deaf(node: Node, process: NodeProcess, max_bytes: int) -> float:
    """Be all the consumers for a while; return the share of a processor that the node then uses."""
    frames = _frames(max_bytes)
    with ExitStack() as opened:
        for _ in range(CONSUMERS):
            deaf = opened.enter_context(socket.socket())
            # Before the connection is made: so the system does not take in much for it.
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", node.broker_port))
            deaf.settimeout(0.1)
            with suppress(TimeoutError):
                deaf.sendall(frames)
        share = wait_until_quiet(process.pid, IDLE_S)
    wait_until_quiet(process.pid)
    return share


@pytest.fixture
def memory(shared_process: NodeProcess) -> Memory:
    return Memory(shared_process.pid)


@pytest.fixture
def bystander(shared: Node, shared_process: NodeProcess) -> Iterator[RawClient]:
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


@pytest.mark.usefixtures("shared_process")
def test_after_all_that_the_node_works(shared: Node) -> None:
    assert create(shared.broker, "after-all-that") == [ErrorCode.NONE]
