"""Kafka's SslEngineValidator: whether a node could connect to its own listener."""

import ssl

from kvorum.security.errors import UnfitStoresError
from kvorum.security.tls_server import TlsBrokenError, TlsServer


def check_own_connection(server: ssl.SSLContext | None, client: ssl.SSLContext) -> None:
    """Let a client and a server of the same settings shake hands; raises UnfitStoresError.

    Brokers of one cluster have alike certificates: one that does not trust its own would not trust
    the others. Names of hosts do not count.
    """
    checks_host = client.check_hostname
    client.check_hostname = False
    try:
        _shake_hands(server, client)
    except (ssl.SSLError, TlsBrokenError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else str(error)
        raise UnfitStoresError(
            f"Invalid value javax.net.ssl.SSLHandshakeException: {reason} for configuration A "
            "client SSLEngine created with the provided settings can't connect to a server "
            "SSLEngine created with those settings."
        ) from error
    finally:
        client.check_hostname = checks_host


def _shake_hands(server: ssl.SSLContext | None, client: ssl.SSLContext) -> None:
    """Exchange bytes until both sides agree; raises SSLError or TlsBrokenError."""
    if server is None:
        raise TlsBrokenError("no version or suite is known")
    there = TlsServer(server)
    received = ssl.MemoryBIO()
    sent = ssl.MemoryBIO()
    here = client.wrap_bio(received, sent)
    is_done = False
    while not (is_done and there.is_established):
        try:
            here.do_handshake()
            is_done = True
        except ssl.SSLWantReadError:
            pass
        there.receive(sent.read())
        received.write(there.outgoing())
