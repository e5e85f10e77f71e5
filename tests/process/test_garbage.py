"""Rubbish on both ports of a running node: its sender is cut off, everybody else is served."""

import random
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from tests.process.spoilt_requests import CUT_OFF
from tests.support.node import OTHER_CLUSTER_ID, Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient
from tests.support.resources import Memory
from tests.support.topics import create, create_request, read_topics, wait_until_served

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import encode_request_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.usefixtures("shared_process")

MIB = 1024 * 1024


@pytest.fixture
def memory(shared_process: NodeProcess) -> Memory:
    """The memory of the shared node."""
    if sys.platform != "linux":
        pytest.skip("memory of another process is read from Linux' /proc")
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
@pytest.mark.parametrize("kind", CUT_OFF)
def test_rubbish_is_cut_off(shared: Node, kind: str) -> None:
    for address in (shared.broker, shared.controller):
        with RawClient(address) as client:
            client.send_bytes(CUT_OFF[kind])
            assert client.is_closed()


@pytest.mark.usefixtures("bystander")
def test_random_bytes(shared: Node) -> None:
    dice = random.Random(3)
    for number in range(300):
        address = (shared.broker, shared.controller)[number % 2]
        with RawClient(address) as client:
            body = dice.randbytes(dice.randrange(200))
            if number % 3:
                body = struct.pack(">hh", dice.choice(list(API_SPECS)), dice.randrange(14)) + body
            client.send_frame(body)


@pytest.mark.usefixtures("bystander")
def test_a_good_request_with_flipped_bits(shared: Node) -> None:
    """Such a request ends with an answer, or with the end of its connection."""
    before = read_topics(shared.broker)
    request = create_request([])
    frame = encode_request_frame(request, version=7, correlation_id=1, client_id="flipping")
    frames = [
        frame,
        encode_request_frame(
            MetadataRequest(topics=None), version=12, correlation_id=1, client_id="flipping"
        ),
    ]
    for good in frames:
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
    frame = with_size(
        encode_request_frame(
            create_request(["never"]), version=7, correlation_id=1, client_id="half"
        )
    )
    for size in range(len(frame)):
        with RawClient(shared.broker) as client:
            client.send_bytes(frame[:size])
            if size % 2:
                client.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
    assert "never" not in read_topics(shared.broker)


@pytest.mark.usefixtures("bystander")
def test_clients_that_send_a_byte_at_a_time(shared: Node) -> None:
    """Many slow ones hold nobody else up, and are answered when they are done."""
    request = ApiVersionsRequest("slow", "1")
    frame = with_size(encode_request_frame(request, version=4, correlation_id=1, client_id="slow"))
    with ExitStack() as opened:
        slow = [opened.enter_context(RawClient(shared.broker)) for _ in range(50)]
        for position in range(len(frame)):
            for client in slow:
                client.send_bytes(frame[position : position + 1])
            if position % 10 == 0:
                wait_until_served(shared.broker)
        assert all(client.read_frame() is not None for client in slow)


@pytest.mark.usefixtures("bystander")
def test_a_client_that_never_reads(shared: Node, memory: Memory) -> None:
    """Unread answers are not kept: the node stops reading the client's requests."""
    frame = with_size(
        encode_request_frame(
            ApiVersionsRequest("deaf", "1"), version=4, correlation_id=1, client_id="deaf"
        )
    )
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


@pytest.mark.usefixtures("bystander")
def test_a_broker_of_another_cluster(shared: Node) -> None:
    request = BrokerRegistrationRequest(
        broker_id=9, cluster_id=OTHER_CLUSTER_ID, incarnation_id=bytes(range(16))
    )
    with RawClient(shared.controller) as client:
        response = client.ask(request, BrokerRegistrationResponse, 4)
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_after_all_that_the_node_works(shared: Node) -> None:
    assert create(shared.broker, "after-all-that") == [ErrorCode.NONE]
