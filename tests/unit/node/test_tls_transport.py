"""Handshakes of TLS, which are a thread's work, beside all that may come meanwhile."""

import ssl
from pathlib import Path
from typing import Final, cast

import pytest
from tests.support.certificates import Authority
from tests.support.held_threads import HeldThreads

from kvorum.node.runtime import Runtime
from kvorum.node.serving.client_transport import ClientTransport
from kvorum.node.serving.tls_transport import ANSWER_BYTES_MAX, TlsTransport
from kvorum.security.tls_server import TlsBrokenError, TlsServer

HALF: Final = 100
"""The bytes of a client's first message in its first part."""
KEY_UPDATE: Final = bytes(27)
"""As long as the answer to an update of keys in TLS 1.3."""


class Below:
    """The transport of a socket whose client has all bytes at once."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.is_over = False
        self.is_taken = True

    def write(self, data: bytes) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return 0 if self.is_taken else len(self.sent)

    def close(self) -> None:
        self.is_over = True

    def is_closing(self) -> bool:
        return self.is_over

    def take(self) -> bytes:
        """Take what was sent."""
        taken = bytes(self.sent)
        self.sent.clear()
        return taken


class UpdatedKeys:
    """TLS after the handshake, with a client that has its keys updated with every byte."""

    is_established = True

    def __init__(self) -> None:
        self._unsent = b""

    def receive(self, data: bytes) -> bytes:
        self._unsent = KEY_UPDATE * len(data)
        return b""

    def outgoing(self) -> bytes:
        return self._unsent


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


def updated_keys(*, is_taken: bool) -> TlsTransport:
    """Return the transport of a client that takes what is sent, or takes nothing."""
    below = Below()
    below.is_taken = is_taken
    return TlsTransport(
        cast("ClientTransport", below),
        cast("TlsServer", UpdatedKeys()),
        cast("Runtime", HeldThreads()),
    )


def test_a_client_that_takes_no_answers_of_tls_fills_no_memory() -> None:
    transport = updated_keys(is_taken=False)
    for _ in range(ANSWER_BYTES_MAX // len(KEY_UPDATE)):
        transport.receive(b"k")
    with pytest.raises(TlsBrokenError, match="does not take"):
        transport.receive(b"k")


def test_a_client_that_takes_its_answers_may_update_its_keys_as_often_as_it_likes() -> None:
    transport = updated_keys(is_taken=True)
    for _ in range(3):
        transport.receive(b"k" * ANSWER_BYTES_MAX)
