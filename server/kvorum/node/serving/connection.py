"""One client's connection: reads frames, answers them one at a time, and sends the responses.

A request is answered by a coroutine on a `Runtime`, in the turn of the loop in which its last byte
came, and as far as it need not wait. The responses of all connections are sent at the end of the
turn. Requests of one connection that came together are answered in one turn each.
"""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, NamedTuple, cast

from kvorum.metadata.address import Address
from kvorum.metadata.standard_authorizer import ANONYMOUS
from kvorum.node.coroutines import Task, Wait, sleep
from kvorum.node.errors import CloseConnectionError
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.runtime import Runtime
from kvorum.node.serving.authentications import Authentications
from kvorum.node.serving.client_transport import ClientTransport
from kvorum.node.serving.connection_rates import AT_ONCE
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.node.serving.frame_writer import FrameWriter
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.sasl_authentication import SaslAuthentication
from kvorum.node.serving.session import Session
from kvorum.node.serving.tls_transport import TlsTransport
from kvorum.node.serving.turn_end import TurnEnd
from kvorum.node.sockets import ConnectionEnd
from kvorum.security.tls_server import HandshakeFailedError, TlsBrokenError, TlsServer
from kvorum.wire.headers import FrameSizeError, take_frame

READ_AHEAD_BYTES = 64 * 1024
"""The bytes of later requests that are read while one is being answered."""
_log = logging.getLogger(__name__)


class Peer(NamedTuple):
    """The address at the other end."""

    host: str
    port: int

    def __str__(self) -> str:
        return str(Address(self.host, self.port))


class OpenConnections(set["ServerConnection"]):
    """The connections of one listener; once it `is_over`, a new one is closed at once."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.is_over = False
        self.closings = RareEvents()
        self.turn_end = TurnEnd(runtime)
        self.authentications = Authentications(runtime)


class ServerConnection(asyncio.Protocol):
    """One connection, from its first to its last byte.

    While a request is being answered, or its response waits for a slow reader, only a small
    read-ahead is taken from the socket, so that a client can neither reorder responses nor fill the
    memory.
    """

    def __init__(self, rules: ConnectionRules, others: OpenConnections) -> None:
        self.last_active_ms = rules.runtime.monotonic_ms()
        self._rules = rules
        self._others = others
        self._peer = Peer("?", 0)
        self._session: Session | None = None
        """The session of a client that does not come in by SASL, from its first request on."""
        self._disconnect = DisconnectListeners()
        self._transport: ClientTransport | None = None
        self._tls: TlsTransport | None = None
        self._sasl: SaslAuthentication | None = None
        self._writer: FrameWriter | None = None
        self._buffer = bytearray()
        self._answering: Task[Any] | None = None
        self._is_answering = False
        self._is_response_due = False
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_reading = True
        self._is_admitted = False
        self._is_held = False
        self._is_finishing = False
        self._hold: asyncio.TimerHandle | None = None
        self._seen_taken_bytes = 0
        self._end = ConnectionEnd()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or the connection is held back by a rate limit."""
        return self._is_answering or self._is_held

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection; close it if there are too many or the server stops."""
        self._transport = cast("ClientTransport", transport)
        tls = self._rules.tls
        if tls is not None and tls.context is not None:
            threads = self._rules.handshakes or self._rules.runtime
            self._tls = TlsTransport(self._transport, TlsServer(tls.context), threads)
            self._transport = self._tls
        self._writer = FrameWriter(self._transport, self._can_write)
        name = transport.get_extra_info("peername") or ("?", 0)
        self._peer = Peer(str(name[0]), int(name[1]))
        sasl = self._rules.sasl
        if sasl is not None:
            self._sasl = SaslAuthentication(
                self._rules,
                sasl,
                self._peer.host,
                self._disconnect,
                self._others.authentications,
            )
        can_be_read = tls is None or tls.context is not None
        if can_be_read and not self._others.is_over and self._is_let_in():
            self._is_admitted = True
            self._others.add(self)
            self._keep_pace()
        else:
            self._transport.abort()

    def _is_let_in(self) -> bool:
        return self._rules.limits.admit(self._rules.listener, self._peer.host)

    def _keep_pace(self) -> None:
        """Hold back, or close after the wait, a connection that exceeds a rate limit."""
        admission = self._rules.limits.pace(self._rules.listener, self._peer.host)
        if admission is AT_ONCE:
            return
        self._is_held = True
        end = self._end_hold if admission.is_served else self.abort
        self._hold = asyncio.get_running_loop().call_later(admission.wait_ms / 1000, end)

    def _end_hold(self) -> None:
        self._is_held = False
        self.last_active_ms = self._rules.runtime.monotonic_ms()
        self._set_reading(wanted=True)
        held = bytes(self._buffer)
        self._buffer.clear()
        if held:
            self.data_received(held)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Remove the connection and give up its response."""
        if self._transport is not None:
            self._end.shut_down(self._transport)
            self._transport = None
        if self._writer is not None:
            self._writer.close()
        if self._hold is not None:
            self._hold.cancel()
        self._buffer.clear()
        self._can_write.set()
        if self._answering is not None:
            self._answering.close()
            self._answering = None
            self._is_answering = False
        if self._is_admitted:
            self._is_admitted = False
            self._rules.limits.release(self._rules.listener, self._peer.host)
            self._others.discard(self)
        self._disconnect.on_disconnect()

    def data_received(self, data: bytes) -> None:
        """Buffer bytes, and begin with the next request if none is being answered."""
        if self._is_held:
            # It is read, so that the end of a client that waits for its turn is noticed.
            self._take(data)
            return
        self.last_active_ms = self._rules.runtime.monotonic_ms()
        tls = self._tls
        if tls is None:
            self._take(data)
        elif tls.is_established:
            self._take(self._decrypted(tls, data))
        else:
            tls.shake_hands(data, partial(self._shaken, tls))
            if tls.early_bytes > READ_AHEAD_BYTES:
                self._set_reading(wanted=False)

    def _take(self, data: bytes) -> None:
        self._buffer += data
        if not self.is_busy:
            self._begin_next()
        elif len(self._buffer) > READ_AHEAD_BYTES:
            self._set_reading(wanted=False)

    def _shaken(self, tls: TlsTransport, received: bytes | Exception) -> None:
        """Take what has come with a part of the handshake; end a connection where it failed."""
        if isinstance(received, HandshakeFailedError):
            self._others.authentications.fail_handshake(
                self._peer.host, self._rules.listener, str(received)
            )
            tls.close()
            return
        if isinstance(received, TlsBrokenError):
            self.close(str(received))
            return
        if isinstance(received, Exception):
            self._break(received)
            return
        if tls.is_established and self._sasl is None:
            self._others.authentications.succeed(can_repeat=False)
        self._take(received)
        self._note_end(tls)
        if tls.early_bytes:
            self.data_received(tls.take_early())

    def _decrypted(self, tls: TlsTransport, data: bytes) -> bytes:
        """Return what a client has sent by TLS; the connection ends if that cannot be read."""
        try:
            received = tls.receive(data)
        except TlsBrokenError as error:
            self.close(str(error))
            return b""
        self._note_end(tls)
        return received

    def _note_end(self, tls: TlsTransport) -> None:
        if tls.is_closed_by_client:
            # As at the end of plain bytes: what came before is answered if that needs no wait.
            self._others.turn_end.call(tls.close)

    def pause_writing(self) -> None:
        """Stop answering: the client reads its responses too slowly."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """Continue to answer."""
        self._can_write.set()

    def close(self, reason: str) -> None:
        """Close because of `reason`, which is logged unless such a line was logged a moment ago."""
        suppressed_count = self._others.closings.happened(self._rules.runtime.monotonic_ms())
        if suppressed_count is not None:
            _log.info(
                LogEvent(
                    "Closed a connection",
                    client=str(self._peer),
                    listener=self._rules.listener,
                    reason=reason,
                    others=suppressed_count or None,
                )
            )
        self.abort()

    def close_if_idle(self, oldest_ms: float) -> None:
        """Close at once if nothing has come or gone since then; to be called again and again.

        A client that takes nothing of its response is idle as well, one that waits for it is not.
        """
        writer = self._writer
        is_sending = writer is not None and writer.is_sending
        if writer is not None and is_sending and writer.taken_bytes != self._seen_taken_bytes:
            self._seen_taken_bytes = writer.taken_bytes
            self.last_active_ms = self._rules.runtime.monotonic_ms()
        elif self.last_active_ms < oldest_ms and (is_sending or not self.is_busy):
            # Not logged: clients that are done often leave an idle connection.
            self.abort()

    def finish(self) -> None:
        """Close once the responses so far are sent."""
        is_sending = self._writer is not None and self._writer.is_sending
        if is_sending or self._is_response_due:
            self._is_finishing = True
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _begin_next(self) -> None:
        sasl = self._sasl if self._sasl is not None and self._sasl.is_pending else None
        bytes_max = self._rules.frame_bytes_max if sasl is None else sasl.frame_bytes_max
        try:
            frame = take_frame(self._buffer, bytes_max=bytes_max)
        except FrameSizeError as error:
            if sasl is None:
                self.close(f"a request of {error.size} bytes (the limit is {bytes_max})")
            else:
                self._begin_answer(sasl.refuse_size())
            return
        if frame is None:
            self._set_reading(wanted=True)
        else:
            self._begin_request(frame)

    def _begin_request(self, frame: bytes) -> None:
        """Answer a frame; close the connection of a client without a name, or with no session."""
        try:
            if self._sasl is not None:
                work = self._sasl.answer(frame)
            else:
                work = self._rules.answer(frame, self._session or self._open_session())
        except CloseConnectionError as error:
            self.close(str(error))
            return
        self._begin_answer(work)

    def _begin_answer(self, work: Coroutine[Wait[Any], Any, ResponseFrame]) -> None:
        self._is_answering = True
        self._answering = Task(work, self._answered)

    def _open_session(self) -> Session:
        """Return the session of a client that its transport has authenticated.

        Raises CloseConnectionError for a client that has no name.
        """
        tls = self._rules.tls
        principal = ANONYMOUS
        if tls is not None and self._tls is not None:
            principal = tls.principal_of(self._tls.certificate)
        self._session = Session(
            self._rules.listener,
            self._rules.protocol,
            self._peer.host,
            principal,
            disconnect=self._disconnect,
        )
        return self._session

    def _answered(self, response: ResponseFrame | Exception) -> None:
        if isinstance(response, Exception):
            self._break(response)
            return
        self._is_response_due = True
        self._is_finishing = self._is_finishing or response.is_last
        self._others.turn_end.call(partial(self._send, response))

    def _send(self, response: ResponseFrame) -> None:
        """Send a response, and go on unless that, or the client's throttle time, takes a while."""
        self._is_response_due = False
        if self._transport is None or self._writer is None:
            return
        sending = None
        try:
            if response.parts is not None:
                sending = self._writer.send(response.parts)
        except Exception as error:  # noqa: BLE001 - any error ends only this connection
            self._break(error)
            return
        if sending is None and response.pause_ms == 0:
            self._sent(response)
            self._go_on()
        else:
            self._answering = Task(self._wait(response, sending), _nothing_is_left)

    async def _wait(self, response: ResponseFrame, sending: Wait[None] | None) -> None:
        """Wait until a response is sent, and for as long as nothing is read after it; go on."""
        try:
            if sending is not None:
                await sending
            self._sent(response)
            if response.pause_ms > 0 and not self._is_finishing:
                await sleep(self._rules.runtime, response.pause_ms)
        except Exception as error:  # noqa: BLE001 - any error ends only this connection
            # Here and not in the task: an error that has passed through it lives on with it.
            self._break(error)
        else:
            self._go_on()

    def _sent(self, response: ResponseFrame) -> None:
        if response.on_sent is not None:
            response.on_sent()

    def _go_on(self) -> None:
        """Begin with the next request."""
        self._answering = None
        self._is_answering = False
        self.last_active_ms = self._rules.runtime.monotonic_ms()
        if self._is_finishing:
            self.finish()
        else:
            self._begin_next()

    def _break(self, error: Exception) -> None:
        """End the connection because of an error that is this request's alone."""
        if isinstance(error, CloseConnectionError):
            self.close(str(error))
            return
        # Whether the transport notices that the client is gone, or a file that is sent, is chance.
        if not isinstance(error, ConnectionError):
            _log.error("A request of %s broke its connection", self._peer, exc_info=error)
        self.abort()

    def _set_reading(self, *, wanted: bool) -> None:
        if self._transport is None or wanted is self._is_reading:
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def _nothing_is_left(_: Exception | None) -> None:
    """Take the end of a coroutine that has gone on by itself."""
