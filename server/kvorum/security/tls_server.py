"""The server's side of one TLS connection, without the network: bytes in, bytes out.

::

    TlsBrokenError              bytes that cannot be read: the connection is to be closed
    └── HandshakeFailedError    client and listener do not agree, or the client is not trusted
"""

import ssl
from typing import Final

HANDSHAKE_RECORD: Final = 0x16
_READ_BYTES: Final = 256 * 1024
_INTERNAL_ERROR: Final = bytes.fromhex("15030300020250")
"""The alert that Java sends to a client that does not speak TLS."""


class TlsBrokenError(Exception):
    """Bytes that cannot be read; what is to be sent then is an alert."""


class HandshakeFailedError(TlsBrokenError):
    """The handshake failed: the client has not been let in."""


class TlsServer:
    """One connection: reads what comes in, and collects what is to be sent.

    After an error, or once `is_closed_by_client`, nothing more is read. What is received is not
    kept: it is returned as far as it can be read.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._received = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._received, self._outgoing, server_side=True)
        self._has_begun = False
        self.is_established = False
        """Whether the handshake is over, and the client as trusted as the listener wants it."""
        self.is_closed_by_client = False

    @property
    def certificate(self) -> bytes | None:
        """The client's certificate in DER, None without one; it has been verified."""
        return self._ssl.getpeercert(binary_form=True)

    def receive(self, data: bytes) -> bytes:
        """Return what can be read after `data`; raises TlsBrokenError, with an alert to be sent."""
        if not self._has_begun and data:
            self._has_begun = True
            if data[0] != HANDSHAKE_RECORD:
                self._outgoing.write(_INTERNAL_ERROR)
                raise HandshakeFailedError("the client does not speak TLS")
        self._received.write(data)
        try:
            if not self.is_established:
                self._ssl.do_handshake()
                self.is_established = True
            return b"".join(iter(self._read, b""))
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            if self.is_established:
                raise TlsBrokenError(reason) from error
            raise HandshakeFailedError(reason) from error

    def _read(self) -> bytes:
        """Return the next bytes that can be read, none without such."""
        try:
            data = self._ssl.read(_READ_BYTES)
        except ssl.SSLWantReadError:
            return b""
        self.is_closed_by_client = not data
        return data

    def send(self, data: bytes) -> None:
        """Add bytes for the client to what is to be sent."""
        if data:
            self._ssl.write(data)

    def say_goodbye(self) -> None:
        """Add the word that nothing more comes to what is to be sent; an answer is not needed."""
        if self.is_established:
            try:
                self._ssl.unwrap()
            except ssl.SSLError:
                # It waits for the client's, or the connection is broken already.
                return

    def outgoing(self) -> bytes:
        """Return what is to be sent now, and forget it."""
        return self._outgoing.read()
