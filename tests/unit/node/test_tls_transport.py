"""Handshakes of TLS, which are a thread's work, beside all that may come meanwhile."""

import ssl
from pathlib import Path
from typing import Final, cast

import pytest
from tests.support.certificates import Authority
from tests.support.held_threads import HeldThreads

from kvorum.node.runtime import Runtime
from kvorum.node.serving.client_transport import ClientTransport
from kvorum.node.serving.tls_transport import TlsTransport
from kvorum.security.tls_server import TlsServer

HALF: Final = 100
"""The bytes of a client's first message in its first part."""


class Below:
    """The transport of a socket whose client has all bytes at once."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.is_over = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.is_over = True

    def is_closing(self) -> bool:
        return self.is_over

    def take(self) -> bytes:
        """Take what was sent."""
        taken = bytes(self.sent)
        self.sent.clear()
        return taken


class Handshake:
    """A client and a listener that shake hands, as a connection has them do it."""

    def __init__(self, own: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own)
        self.threads = HeldThreads()
        self.below = Below()
        self.transport = TlsTransport(
            cast("ClientTransport", self.below),
            TlsServer(context),
            cast("Runtime", self.threads),
        )
        self.taken: list[bytes | Exception] = []
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        self._received = ssl.MemoryBIO()
        self._sent = ssl.MemoryBIO()
        self._client = trusting.wrap_bio(self._received, self._sent)

    def of_client(self, received: bytes = b"") -> bytes:
        """Return what the client says to this."""
        self._received.write(received)
        try:
            self._client.do_handshake()
        except ssl.SSLWantReadError:
            return self._sent.read()
        self._client.write(b"request")
        return self._sent.read()

    def come(self, data: bytes) -> None:
        self.transport.shake_hands(data, self._take)

    def _take(self, received: bytes | Exception) -> None:
        self.taken.append(received)
        early = self.transport.take_early()
        if early:
            self.come(early)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The key and the certificate of the listener."""
    path = tmp_path_factory.mktemp("keys") / "own.pem"
    return Authority().certify("listener").write_pem(path)


def test_a_handshake_waits_for_its_thread_and_goes_on_with_what_has_come(own: Path) -> None:
    handshake = Handshake(own)
    hello = handshake.of_client()
    handshake.come(hello[:HALF])
    handshake.come(hello[HALF:])
    assert (handshake.threads.held_count, handshake.transport.early_bytes) == (1, len(hello) - HALF)
    assert not handshake.below.sent
    handshake.threads.release()
    assert handshake.taken == [b"", b""]
    handshake.come(handshake.of_client(handshake.below.take()))
    assert not handshake.transport.is_established
    handshake.threads.release()
    assert handshake.transport.is_established
    assert handshake.taken[2:] == [b"request"]


def test_nothing_is_said_to_a_client_whose_connection_was_closed_meanwhile(own: Path) -> None:
    handshake = Handshake(own)
    handshake.come(handshake.of_client())
    handshake.transport.abort()
    assert handshake.below.is_over
    handshake.threads.release()
    assert (handshake.taken, handshake.below.take()) == ([], b"")
