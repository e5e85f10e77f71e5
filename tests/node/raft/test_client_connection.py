"""Connections to peers: that answer, do not, refuse, talk nonsense, or hide behind a balancer."""

import asyncio
import logging
import socket
import struct
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from tests.node.raft.cluster import static_settings
from tests.support.fake_node import HOST, AnswerFrame, FrameServer
from tests.support.waiting import StandingClock, wait_for_async

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock, SystemClock
from kvorum.node.events.log_event import INTERVAL_MS
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ConnectFailedError,
    ConnectionLostError,
    NoCommonVersionError,
    RequestTimedOutError,
    SaslAuthenticationError,
)
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.network_channel import NetworkChannel
from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.raft import messages as core
from kvorum.raft.destination import Destination
from kvorum.raft.effects import Send
from kvorum.raft.replica_key import ReplicaKey
from kvorum.security.client_security import ClientSecurity
from kvorum.security.sasl_login import SaslLogin
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message

VOTE = core.VoteRequest(
    epoch=1, replica=ReplicaKey(1), voter=None, log_end=OffsetAndEpoch(0, 0), is_pre_vote=False
)
SESSION_MS = 50
SILENT_HOST = "192.0.2.1"


async def connect(peer: FrameServer, timeout_ms: int = 5000) -> ClientConnection:
    return await ClientConnection.open(
        host=HOST, port=peer.port, client_id="test", timeout_ms=timeout_ms
    )


@asynccontextmanager
async def connected(answer: AnswerFrame) -> AsyncGenerator[ClientConnection]:
    """Hold a connection to a peer that answers like this."""
    async with FrameServer(answer) as peer:
        connection = await connect(peer)
        try:
            yield connection
        finally:
            await connection.close()


def versions(error: ErrorCode = ErrorCode.NONE, **ranges: tuple[int, int]) -> ApiVersionsResponse:
    keys = {"vote": 52, "describe_cluster": 60, "api_versions": 18}
    entries = [ApiVersionsResponse.ApiVersion(keys[name], *ends) for name, ends in ranges.items()]
    return ApiVersionsResponse(error, entries)


def answering(offered: ApiVersionsResponse, then: AnswerFrame | None = None) -> AnswerFrame:
    """Answer ApiVersions with what is offered, and everything else by `then`."""

    async def answer(frame: bytes) -> bytes | None:
        header, _ = decode_request_frame(frame)
        if header.request_api_key != ApiKey.API_VERSIONS:
            return None if then is None else await then(frame)
        return framed(offered, header, version=header.request_api_version)

    return answer


def describing(then: AnswerFrame | None = None) -> AnswerFrame:
    """Offer DescribeCluster in all versions, and answer it by `then`."""
    return answering(versions(describe_cluster=(0, 2)), then)


def framed(response: Message, header: RequestHeader, *, version: int) -> bytes:
    return with_size(
        encode_response_frame(response, version=version, correlation_id=header.correlation_id)
    )


def cluster_answer(frame: bytes) -> bytes:
    """Answer a DescribeCluster request; the cluster's name is the version it was asked in."""
    header, _ = decode_request_frame(frame)
    version = header.request_api_version
    return framed(DescribeClusterResponse(cluster_id=f"v{version}"), header, version=version)


async def describe(connection: ClientConnection, timeout_ms: int = 5000) -> str:
    response = await connection.request(
        DescribeClusterRequest(), DescribeClusterResponse, timeout_ms=timeout_ms
    )
    return response.cluster_id


async def answer_cluster(frame: bytes) -> bytes:
    return cluster_answer(frame)


async def test_the_highest_common_version_is_spoken() -> None:
    for offered, expected in [((0, 0), "v0"), ((0, 1), "v1"), ((0, 99), "v2"), ((1, 2), "v2")]:
        answer = answering(versions(describe_cluster=offered), answer_cluster)
        async with connected(answer) as connection:
            assert await describe(connection) == expected


async def test_no_common_version_leaves_the_connection_open() -> None:
    offered = versions(describe_cluster=(0, 2), vote=(50, 60))
    async with connected(answering(offered, answer_cluster)) as connection:
        with pytest.raises(NoCommonVersionError, match="50 to 60"):
            await connection.request(VoteRequest(), VoteResponse, timeout_ms=1000)
        assert connection.is_open
        assert await describe(connection) == "v2"


async def test_an_api_that_is_not_offered_has_no_version() -> None:
    async with connected(describing()) as connection:
        with pytest.raises(NoCommonVersionError, match="does not offer"):
            connection.version_for(VoteRequest)


async def test_an_old_peer_is_asked_again_in_a_version_it_knows() -> None:
    asked: list[int] = []

    async def answer(frame: bytes) -> bytes:
        header, _ = decode_request_frame(frame)
        asked.append(header.request_api_version)
        is_known = header.request_api_version <= 2
        error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
        response = versions(error, api_versions=(0, 2), describe_cluster=(0, 0))
        return framed(response, header, version=header.request_api_version if is_known else 0)

    async with connected(answer) as connection:
        assert asked == [4, 2]
        assert connection.peer_versions[ApiKey.DESCRIBE_CLUSTER] == (0, 0)


async def test_requests_are_pipelined_and_answers_find_who_asked() -> None:
    waiting: list[bytes] = []

    async def answer_both_backwards(frame: bytes) -> bytes:
        waiting.append(frame)
        if len(waiting) < 2:
            return b""
        return b"".join(cluster_answer(one) for one in reversed(waiting))

    async with connected(describing(answer_both_backwards)) as connection:
        answers = await asyncio.gather(describe(connection), describe(connection))
        assert list(answers) == ["v2", "v2"]


async def never(_: bytes) -> bytes:
    return b""


async def test_a_peer_that_does_not_answer_in_time_is_given_up() -> None:
    async with connected(describing(never)) as connection:
        with pytest.raises(RequestTimedOutError):
            await describe(connection, timeout_ms=20)
        assert not connection.is_open
        with pytest.raises(RequestTimedOutError):
            await describe(connection)


async def test_a_peer_that_hangs_up_fails_everyone_who_waits() -> None:
    async with connected(describing()) as connection:
        outcomes = await asyncio.gather(
            describe(connection), describe(connection), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [ConnectionLostError] * 2


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack(">i", -5),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 1) + b"x",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
async def test_a_peer_that_talks_nonsense_is_left(garbage: bytes) -> None:
    async def nonsense(_: bytes) -> bytes:
        return garbage

    async with connected(describing(nonsense)) as connection:
        with pytest.raises(ConnectionLostError):
            await describe(connection)
    async with FrameServer(nonsense) as peer:
        with pytest.raises((ConnectionLostError, ConnectFailedError)):
            await connect(peer)


async def test_a_response_that_cannot_be_read_closes_the_connection() -> None:
    async def cut_short(frame: bytes) -> bytes:
        header, _ = decode_request_frame(frame)
        return with_size(struct.pack(">i", header.correlation_id) + b"\x00\x01")

    async with connected(describing(cut_short)) as connection:
        with pytest.raises(ConnectionLostError, match="not a response"):
            await describe(connection)
        assert not connection.is_open


async def test_no_node_there() -> None:
    async with FrameServer(answering(versions())) as peer:
        pass
    with pytest.raises(ConnectFailedError, match="no connection to"):
        await connect(peer)


async def test_a_peer_that_accepts_and_says_nothing() -> None:
    async with FrameServer(never) as peer:
        with pytest.raises(ConnectFailedError, match="within 30 ms"):
            await connect(peer, timeout_ms=30)


async def test_an_address_that_does_not_answer_leaves_time_for_those_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    connect_to = loop.sock_connect
    asked: list[str] = []

    async def addresses(_host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        hosts = (SILENT_HOST, HOST)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port)) for host in hosts]

    async def sock_connect(connecting: socket.socket, address: tuple[str, int]) -> None:
        asked.append(address[0])
        if address[0] == SILENT_HOST:
            await asyncio.Event().wait()
        await connect_to(connecting, address)

    monkeypatch.setattr(loop, "getaddrinfo", addresses)
    monkeypatch.setattr(loop, "sock_connect", sock_connect)
    async with FrameServer(answering(versions())) as peer:
        connection = await ClientConnection.open(
            host="controllers.test", port=peer.port, client_id="test", timeout_ms=2000
        )
        assert asked == [SILENT_HOST, HOST]
        await connection.close()


async def test_closing_fails_who_waits_and_may_be_done_twice() -> None:
    asked = asyncio.Event()

    async def note(_: bytes) -> bytes:
        asked.set()
        return b""

    async with connected(describing(note)) as connection:
        waiting = asyncio.create_task(describe(connection))
        await asked.wait()
        await connection.close()
        with pytest.raises(ConnectionLostError, match="was closed"):
            await waiting


def letting_in(then: AnswerFrame, *, session_ms: int) -> AnswerFrame:
    """Let a client in by PLAIN for a session of this length; answer its requests by `then`."""
    keys = {ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2, ApiKey.DESCRIBE_CLUSTER: 2}
    offered = [ApiVersionsResponse.ApiVersion(key, 0, most) for key, most in keys.items()]
    answers: dict[int, Message] = {
        ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        ApiKey.SASL_AUTHENTICATE: SaslAuthenticateResponse(session_lifetime_ms=session_ms),
    }

    async def answer(frame: bytes) -> bytes | None:
        header, _ = decode_request_frame(frame)
        found = answers.get(header.request_api_key)
        if found is None:
            return await then(frame)
        return framed(found, header, version=header.request_api_version)

    return answering(ApiVersionsResponse(api_keys=offered), answer)


LOGIN = ClientSecurity(login=SaslLogin("PLAIN", "alice", "secret of alice"))


async def test_a_client_authenticates_again_before_its_first_request_late_in_a_session() -> None:
    asked: list[int] = []
    waiting: list[bytes] = []
    let_in = letting_in(answer_cluster, session_ms=SESSION_MS)

    async def answer(frame: bytes) -> bytes | None:
        """Leave the first request without its answer until the client authenticates again."""
        asked.append(decode_request_frame(frame)[0].request_api_key)
        if asked[-1] == ApiKey.DESCRIBE_CLUSTER and not waiting:
            waiting.append(frame)
            return b""
        answered = await let_in(frame)
        if waiting and asked[-1] == ApiKey.SASL_HANDSHAKE:
            return cluster_answer(waiting[0]) + (answered or b"")
        return answered

    async with FrameServer(answer) as peer:
        connection = await Outgoing(LOGIN).open(
            Address(HOST, peer.port), client_id="c", timeout_ms=5000
        )
        before = asyncio.create_task(describe(connection))
        await wait_for_async(lambda: len(waiting) == 1, "the first request has come")
        asked.clear()
        end_s = time.monotonic() + SESSION_MS / 1000
        await wait_for_async(lambda: time.monotonic() > end_s, "most of the session is over")
        after = [describe(connection) for _ in range(2)]
        assert await asyncio.gather(before, *after) == ["v2"] * 3
        login = [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE]
        assert asked == [*login, *[ApiKey.DESCRIBE_CLUSTER] * 2]
        assert connection.is_open
        await connection.close()


async def test_a_client_that_is_not_let_in_again_loses_its_connection() -> None:
    let_in = letting_in(answer_cluster, session_ms=SESSION_MS)
    logins: list[bytes] = []

    async def refuse_again(frame: bytes) -> bytes | None:
        header, _ = decode_request_frame(frame)
        if header.request_api_key == ApiKey.SASL_AUTHENTICATE:
            logins.append(frame)
        if len(logins) < 2:
            return await let_in(frame)
        refusal = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "not again")
        return framed(refusal, header, version=header.request_api_version)

    async with FrameServer(refuse_again) as peer:
        connection = await Outgoing(LOGIN).open(
            Address(HOST, peer.port), client_id="c", timeout_ms=5000
        )
        end_s = time.monotonic() + SESSION_MS / 1000
        await wait_for_async(lambda: time.monotonic() > end_s, "most of the session is over")
        with pytest.raises(SaslAuthenticationError, match="not again"):
            await describe(connection)
        assert not connection.is_open
        await peer.wait_until_left()


async def test_a_session_without_an_end_takes_requests_as_long_as_it_is_open() -> None:
    async with FrameServer(letting_in(answer_cluster, session_ms=0)) as peer:
        connection = await Outgoing(LOGIN).open(
            Address(HOST, peer.port), client_id="c", timeout_ms=5000
        )
        assert await describe(connection) == "v2"
        assert connection.is_open
        await connection.close()


async def test_a_refused_login_is_logged_once_in_a_while_and_without_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(frame: bytes) -> bytes | None:
        header, _ = decode_request_frame(frame)
        if header.request_api_key != ApiKey.SASL_AUTHENTICATE:
            return await let_in(frame)
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no\nfor alice"
        )
        return framed(response, header, version=header.request_api_version)

    let_in = letting_in(answer_cluster, session_ms=0)
    outgoing = Outgoing(LOGIN)
    async with FrameServer(refuse) as peer:
        for _ in range(2):
            with pytest.raises(SaslAuthenticationError, match="no\nfor alice"):
                await outgoing.open(Address(HOST, peer.port), client_id="c", timeout_ms=5000)
    (line,) = (str(each.msg) for each in caplog.records if each.levelname == "ERROR")
    assert f"Connection to {HOST}:{peer.port} failed authentication due to: no\\nfor alice" in line
    assert "secret" not in caplog.text


class PlayedConnection:
    """A connection to a node that gives every vote the same answer."""

    def __init__(self, error: ErrorCode) -> None:
        self.is_open = True
        self._error = error

    def version_for(self, message: object) -> int:
        del message
        return 2

    async def request(self, *_: object, **__: object) -> VoteResponse:
        return VoteResponse(error_code=self._error)

    def abort(self) -> None:
        self.is_open = False

    async def close(self) -> None:
        self.is_open = False


class PlayedOutgoing(Outgoing):
    """Remembers every connection that was opened."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.opened: list[PlayedConnection] = []
        self._error = error

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        del address, client_id, timeout_ms
        self.opened.append(PlayedConnection(self._error))
        return cast("ClientConnection", self.opened[-1])


def channel_over(
    outgoing: Outgoing, folder: Path, *, clock: Clock
) -> tuple[NetworkChannel, asyncio.Queue[PeerResult]]:
    """Return the channel of node 1, and the queue of its results."""
    results = asyncio.Queue[PeerResult]()
    channel = NetworkChannel(
        static_settings(folder),
        clock=clock,
        outgoing=outgoing,
        on_result=lambda _, result: results.put_nowait(result),
    )
    return channel, results


@pytest.mark.parametrize(
    ("destination_id", "are_open"), [(-2, [False, False]), (-7, [False, False]), (2, [True])]
)
async def test_only_a_replica_keeps_its_connection_after_an_answer(
    tmp_path: Path, destination_id: int, are_open: list[bool]
) -> None:
    outgoing = PlayedOutgoing()
    channel, results = channel_over(outgoing, tmp_path, clock=SystemClock())
    for number in (1, 2):
        channel.send(Send(number, Destination(destination_id, "host", 9093), VOTE))
        await results.get()
    assert [one.is_open for one in outgoing.opened] == are_open
    await channel.close()


class SlowOutgoing(PlayedOutgoing):
    """Opens a connection in the next turn of the loop."""

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        await asyncio.sleep(0)
        return await super().open(address, client_id=client_id, timeout_ms=timeout_ms)


@pytest.mark.parametrize(
    ("destinations", "are_open"),
    [
        ((Destination(-2, "host", 9093), Destination(-2, "host", 9093)), [False, False]),
        ((Destination(2, "host", 9093), Destination(2, "elsewhere", 9093)), [False, True]),
    ],
    ids=["bootstrap server", "other address"],
)
async def test_a_connection_that_is_opened_after_the_end_of_its_link_is_closed(
    tmp_path: Path, destinations: tuple[Destination, Destination], are_open: list[bool]
) -> None:
    outgoing = SlowOutgoing()
    channel, results = channel_over(outgoing, tmp_path, clock=SystemClock())
    for number, destination in enumerate(destinations):
        channel.send(Send(number, destination, VOTE))
    for _ in destinations:
        await results.get()
    assert [one.is_open for one in outgoing.opened] == are_open
    await channel.close()


async def test_it_is_warned_of_more_than_once_and_not_at_every_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, outgoing = StandingClock(), PlayedOutgoing(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    links, results = channel_over(outgoing, tmp_path, clock=clock)

    async def ask() -> core.RequestFailed:
        links.send(Send(1, Destination(2, "host", 9093), VOTE))
        response = (await results.get()).response
        assert isinstance(response, core.RequestFailed)
        return response

    caplog.set_level(logging.WARNING)
    assert (await ask()).is_denied
    for _ in range(5):
        await ask()
    assert len(caplog.records) == 1
    clock.now_ms = INTERVAL_MS
    await ask()
    first, second = (record.getMessage() for record in caplog.records)
    assert "A peer does not permit this node's requests of the quorum" in first
    assert "peer=2 at=host:9093" in first
    assert "others=5" in second
    await links.close()
