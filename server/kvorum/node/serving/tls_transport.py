"""A transport that encrypts: what is written to it goes out as TLS by the transport below."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kvorum.node.coroutines import Task, in_thread
from kvorum.node.runtime import Runtime
from kvorum.node.serving.client_transport import ClientTransport
from kvorum.security.tls_server import TlsBrokenError, TlsServer

ANSWER_BYTES_MAX: Final = 16 * 1024
"""The bytes of TLS's own answers that may wait for a client, some hundred updates of its keys."""
OnShaken: TypeAlias = Callable[[bytes | Exception], None]
"""Takes what can be read already, or TlsBrokenError, whose alert has been sent."""


class TlsTransport:
    """The server's side of a TLS connection on the transport of its socket.

    The handshake is a thread's work, so that other clients do not wait for its arithmetic. What
    comes meanwhile is kept; after it nothing is: what is written is encrypted and handed on, so
    that the limits of the transport below are those of this one.
    """

    def __init__(self, below: ClientTransport, tls: TlsServer, threads: Runtime) -> None:
        self._below = below
        self._tls = tls
        self._threads = threads
        self._early = bytearray()
        self._is_shaking = False
        self._answer_bytes = 0

    @property
    def is_established(self) -> bool:
        """Whether the handshake is over, and the client as trusted as the listener wants it."""
        return not self._is_shaking and self._tls.is_established

    @property
    def early_bytes(self) -> int:
        """The number of bytes that have come while a thread works on those before."""
        return len(self._early)

    def shake_hands(self, data: bytes, then: OnShaken) -> None:
        """Go on with the handshake; `then` is not called once the connection is closed."""
        self._early += data
        if self._is_shaking:
            return
        self._is_shaking = True
        taken = self.take_early()

        def shaken(received: bytes | Exception) -> None:
            self._is_shaking = False
            if not self._below.is_closing():
                self._flush()
                then(received)

        async def shake() -> bytes:
            received: bytes = await in_thread(self._threads, lambda: self._tls.receive(taken))
            return received

        Task(shake(), shaken)

    def take_early(self) -> bytes:
        """Take what has come while a thread was at work."""
        taken = bytes(self._early)
        self._early.clear()
        return taken

    @property
    def is_closed_by_client(self) -> bool:
        """Whether the client has said that nothing more comes."""
        return self._tls.is_closed_by_client

    @property
    def certificate(self) -> bytes | None:
        """The client's certificate in DER, None without one."""
        return self._tls.certificate

    def receive(self, data: bytes) -> bytes:
        """Return what can be read after `data`, and send what TLS has to say to that.

        Raises TlsBrokenError, also for a client that takes none of it; the alert has been sent, and
        the connection is to be closed.
        """
        if self._below.get_write_buffer_size() == 0:
            self._answer_bytes = 0
        try:
            received = self._tls.receive(data)
        finally:
            self._answer_bytes += self._flush()
        if self._answer_bytes > ANSWER_BYTES_MAX and self._below.get_write_buffer_size() > 0:
            raise TlsBrokenError("the client does not take what TLS answers")
        return received

    def _flush(self) -> int:
        """Send what TLS has to say; return how many bytes that is."""
        outgoing = self._tls.outgoing()
        if outgoing:
            self._below.write(outgoing)
        return len(outgoing)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt bytes, and send them."""
        self._tls.send(bytes(data))
        self._flush()

    def close(self) -> None:
        """Send the client the end of TLS, and close once all is sent."""
        if not self._is_shaking:
            self._tls.say_goodbye()
            self._flush()
        self._below.close()

    def abort(self) -> None:
        """Close at once; the end of TLS is sent only if that does not wait for the client."""
        if self._below.get_write_buffer_size() == 0:
            self.close()
        else:
            self._below.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a fact about the connection, as the transport below knows it."""
        return True if name == "sslcontext" else self._below.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the system has not taken yet."""
        return self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the number of unsent bytes from which on the protocol pauses."""
        self._below.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Read nothing for now."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._below.resume_reading()

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or will be in a moment."""
        return self._below.is_closing()
