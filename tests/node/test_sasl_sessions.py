"""Sessions by SASL with an end, on a connection by itself whose clock stands."""

import asyncio
import struct
from typing import Final

from tests.support.sasl_exchange import decoded, frame
from tests.support.waiting import StandingClock, wait_for_async

from kvorum.metadata.api import RequestError
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.coroutines import Signal
from kvorum.node.serving.connection import OpenConnections, ServerConnection
from kvorum.node.serving.connection_quotas import ConnectionQuotas, Limits
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.listener_sasl import ListenerSasl
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import Session
from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_server import SaslMechanism
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest

SESSION_MS: Final = 5_000
UNKNOWN_BYTES_MAX: Final = 200
"""The longest frame of a client before it has logged in."""
RESPONSE: Final = b"response"
HANDSHAKE: Final = frame(SaslHandshakeRequest("PLAIN"), 1)
TOKEN: Final = frame(SaslAuthenticateRequest(b"\0alice\0as"), 2)
WRONG: Final = frame(SaslAuthenticateRequest(b"\0alice\0bs"), 2)
REQUEST: Final = frame(MetadataRequest(topics=[]), 9)


class SentBytes(asyncio.Transport):
    """A transport whose client has all bytes at once."""

    def __init__(self) -> None:
        super().__init__({"socket": None, "peername": ("127.0.0.1", 1)})
        self.sent = bytearray()
        self.is_over = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing to do: nothing is held."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def abort(self) -> None:
        self.is_over = True

    def close(self) -> None:
        self.is_over = True

    def pause_reading(self) -> None:
        """Nothing to do: nothing is read."""

    def resume_reading(self) -> None:
        """Nothing to do either."""

    def take_frame(self) -> bytes | None:
        """Take the next frame that has come, None without one."""
        if not self.sent:
            return None
        (size,) = struct.unpack_from(">i", self.sent)
        found = bytes(self.sent[4 : 4 + size])
        del self.sent[: 4 + size]
        return found


class Client:
    """A client of a listener whose sessions have an end, or none for 0."""

    def __init__(self, session_ms_max: int = SESSION_MS) -> None:
        self.clock = StandingClock()
        self.transport = SentBytes()
        runtime = AsyncioRuntime(self.clock, thread_name="requests")
        self.asked: list[bytes] = []
        self.may_answer = Signal(runtime)
        self.may_answer.set()
        plain = SaslMechanism(lambda: PlainServer({"alice": "as"}), session_ms_max)
        rules = ConnectionRules(
            listener="SECRET",
            protocol=SecurityProtocol.SASL_PLAINTEXT,
            frame_bytes_max=1_000,
            answer=self._answer,
            refuse=self._refuse,
            limits=ConnectionQuotas(Limits(total_max=1, per_address_max=1), self.clock),
            runtime=runtime,
            sasl=ListenerSasl(
                {"PLAIN": plain}, frame_bytes_max=UNKNOWN_BYTES_MAX, failure_delay_ms=0
            ),
        )
        others = OpenConnections(runtime)
        self.counts = others.authentications
        self.connection = ServerConnection(rules, others)
        self.connection.connection_made(self.transport)

    async def _answer(self, frame: bytes, session: Session) -> ResponseFrame:
        assert session.principal.name == "alice"
        self.asked.append(frame)
        await self.may_answer.wait()
        return ResponseFrame([RESPONSE])

    def _refuse(self, frame: bytes, session: Session, error: RequestError) -> ResponseFrame:
        raise AssertionError((frame, session, error))

    def send(self, request: bytes) -> None:
        self.connection.data_received(struct.pack(">i", len(request)) + request)

    async def ask(self, request: bytes) -> bytes | None:
        """Return the response, None where the connection is closed."""
        self.send(request)
        await wait_for_async(
            lambda: self.transport.sent or self.transport.is_over or None, "a response, or the end"
        )
        return self.transport.take_frame()

    async def log_in(self) -> int:
        """Authenticate, and return the lifetime of the session."""
        await self.ask(HANDSHAKE)
        response = decoded(await self.ask(TOKEN), SaslAuthenticateResponse, 2)
        assert response.error_code == ErrorCode.NONE
        return response.session_lifetime_ms


async def test_a_client_may_announce_a_long_frame_once_it_has_logged_in() -> None:
    announced = struct.pack(">i", UNKNOWN_BYTES_MAX + 1)
    known = Client()
    await known.log_in()
    known.connection.data_received(announced)
    unknown = Client()
    unknown.connection.data_received(announced)
    # It is not read on: its end is under way.
    assert (known.connection.is_busy, unknown.connection.is_busy) == (False, True)
    await wait_for_async(lambda: unknown.transport.is_over or None, "it is closed")
    assert not known.transport.is_over


async def test_the_request_after_the_end_of_a_session_closes_the_connection() -> None:
    client = Client()
    assert await client.log_in() == SESSION_MS
    client.clock.now_ms += SESSION_MS
    assert await client.ask(REQUEST) == RESPONSE
    client.clock.now_ms += 1
    assert not client.transport.is_over
    assert await client.ask(REQUEST) is None
    assert client.asked == [REQUEST]
    assert client.counts.expired_count == 1


async def test_the_session_of_a_client_that_does_not_hear_of_its_end_ends_all_the_same() -> None:
    client = Client()
    await client.ask(HANDSHAKE)
    assert await client.ask(frame(SaslAuthenticateRequest(b"\0alice\0as"), 0)) is not None
    client.clock.now_ms += SESSION_MS + 1
    assert await client.ask(REQUEST) is None


async def test_a_session_without_an_end_goes_on() -> None:
    client = Client(session_ms_max=0)
    assert await client.log_in() == 0
    client.clock.now_ms += 100 * SESSION_MS
    assert await client.ask(REQUEST) == RESPONSE
    # It may not authenticate again either: the handshake is a request.
    assert await client.ask(HANDSHAKE) == RESPONSE
    assert client.asked == [REQUEST, HANDSHAKE]


async def test_a_client_authenticates_again_before_the_end_and_after_it() -> None:
    client = Client()
    await client.log_in()
    for number, elapsed_ms in enumerate((SESSION_MS - 1, SESSION_MS, SESSION_MS + 1), start=1):
        client.clock.now_ms += elapsed_ms
        assert await client.log_in() == SESSION_MS
        assert await client.ask(REQUEST) == RESPONSE
        assert client.counts.repeated_count == number
    assert client.counts.successful_count == 1


async def test_a_client_begins_to_authenticate_again_once_in_a_second() -> None:
    client = Client()
    await client.log_in()
    # The first authentication does not count.
    await client.log_in()
    client.clock.now_ms += 999
    assert await client.ask(HANDSHAKE) == RESPONSE
    client.clock.now_ms += 1
    await client.log_in()
    assert client.counts.repeated_count == 2
    assert client.asked == [HANDSHAKE]


async def test_a_handshake_too_soon_does_not_rescue_a_session_that_is_over() -> None:
    client = Client(session_ms_max=100)
    await client.log_in()
    await client.log_in()
    client.clock.now_ms += 101
    assert await client.ask(HANDSHAKE) is None
    assert client.counts.expired_count == 1


async def test_a_response_that_comes_after_the_end_of_the_session_is_sent() -> None:
    client = Client()
    await client.log_in()
    client.may_answer.clear()
    client.send(REQUEST)
    client.send(HANDSHAKE)
    client.clock.now_ms += SESSION_MS + 1
    client.may_answer.set()
    answers = [await wait_for_async(client.transport.take_frame, "both are answered") for _ in "12"]
    assert answers[0] == RESPONSE
    assert decoded(await client.ask(TOKEN), SaslAuthenticateResponse, 2).error_code == 0


async def test_a_wrong_password_ends_the_connection_and_counts_as_one_of_a_known_client() -> None:
    client = Client()
    await client.log_in()
    await client.ask(HANDSHAKE)
    response = decoded(await client.ask(WRONG), SaslAuthenticateResponse, 2)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    await wait_for_async(lambda: client.transport.is_over or None, "it is closed")
    assert (client.counts.failed_count, client.counts.failed_repeat_count) == (0, 1)
