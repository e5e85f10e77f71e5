"""Messages of SASL, whole and damaged at each byte, read by Kafka's classes and by ours."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

import pytest
from tests.interop.damaged_bytes import damaged
from tests.support.kafka.java import Java

from kvorum.security.oauth_bearer_messages import ClientResponse, OAuthBearerSyntaxError
from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_server import SaslAuthenticationError, SaslBrokenError
from kvorum.security.scram_messages import (
    ClientFinal,
    ClientFirst,
    ScramSyntaxError,
    ServerFinal,
    ServerFirst,
)

USER: Final = "alice"
PASSWORD: Final = "of alice"
REFUSED: Final = "!"
CHANGES: Final = b"\x00\x01 ,=abc/+09\x7f\xc3\xa9\xff"
"""The bytes that take the place of others."""
WHOLE: Final[Mapping[str, tuple[bytes, ...]]] = {
    "client-first": (
        b"n,,n=alice,r=nonce",
        b"n,a=bob,n=al=2Cice=3D,r=!nonce~,tokenauth=true,b=c",
        b"n,,m=must,n=alice,r=nonce,x=",
        b"n,,n=alice,r=nonce,tokenauth=false,tokenauth=true",
        b"y,,n=alice,r=nonce",
        b"p=tls-unique,,n=alice,r=nonce",
    ),
    "client-final": (
        b"c=biws,r=nonce,p=cHJvb2Y=",
        b"c=biws,r=nonce,ext=1,p=cHJvb2Y=",
        b"c=,r=nonce,p=",
    ),
    "server-first": (
        b"r=nonce,s=c2FsdA==,i=4096",
        b"m=must,r=nonce,s=c2FsdA==,i=4096,x=y",
        b"r=nonce,s=,i=2147483647",
        b"r=nonce,s=c2FsdA==,i=2147483648",
        b"r=nonce,s=c2FsdA==,i=0",
    ),
    "server-final": (b"v=c2lnbmF0dXJl", b"v=c2lnbmF0dXJl,x=y", b"e=unknown-user", b"e=other-error"),
    "oauth-bearer": (
        b"n,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,a=al=2Cice,\x01auth=bearer  a.b.c==\x01name=the value\x01\x01",
        b"n,,\x01name=value\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01auth=Bearer d\x01\x01",
    ),
    "plain": (
        b"\x00alice\x00of alice",
        b"alice\x00alice\x00of alice",
        b"bob\x00alice\x00of alice",
        b"\x00bob\x00of alice",
        b"\x00alice\x00of alice\x00",
    ),
}


def _client_first(message: bytes) -> tuple[object, ...]:
    read = ClientFirst.decode(message)
    extensions = ", ".join(f"{key}={value}" for key, value in sorted(read.extensions.items()))
    # In Kafka several extensions are in an order that is another one in each process.
    signed = read.signed if len(read.extensions) < 2 else ""
    return read.authorization_id, read.name, read.nonce, f"{{{extensions}}}", signed


def _client_final(message: bytes) -> tuple[object, ...]:
    read = ClientFinal.decode(message)
    return read.channel_binding.hex(), read.nonce, read.proof.hex()


def _server_first(message: bytes) -> tuple[object, ...]:
    read = ServerFirst.decode(message)
    return read.nonce, read.salt.hex(), read.iterations


def _server_final(message: bytes) -> tuple[object, ...]:
    read = ServerFinal.decode(message)
    return "null" if read.error is None else read.error, read.signature.hex()


def _oauth_bearer(message: bytes) -> tuple[object, ...]:
    read = ClientResponse.decode(message)
    return read.authorization_id, read.token


def _plain(message: bytes) -> tuple[object, ...]:
    server = PlainServer({USER: PASSWORD})
    server.evaluate(message)
    assert server.user is not None
    return (server.user.name,)


READERS: Final[Mapping[str, Callable[[bytes], tuple[object, ...]]]] = {
    "client-first": _client_first,
    "client-final": _client_final,
    "server-first": _server_first,
    "server-final": _server_final,
    "oauth-bearer": _oauth_bearer,
    "plain": _plain,
}


def answer_of_ours(kind: str, message: bytes) -> str:
    try:
        read = READERS[kind](message)
    except (
        ScramSyntaxError,
        OAuthBearerSyntaxError,
        SaslAuthenticationError,
        SaslBrokenError,
    ) as error:
        return f"{REFUSED}{str(error).encode().hex()}"
    return " ".join(str(field).encode().hex() for field in read)


@pytest.mark.parametrize("seed", range(3))
def test_messages_are_read_and_refused_as_by_kafka(java: Java, seed: int) -> None:
    random = Random(seed)
    messages = [
        (kind, message)
        for kind, whole in WHOLE.items()
        for one in whole
        for message in damaged(one, CHANGES, random)
    ]
    asked = [f"{kind} {message.hex()}" for kind, message in messages]
    answers = java.answers("SaslMessages", USER, PASSWORD, asked=asked)
    differing = [
        (kind, message, theirs, ours)
        for (kind, message), theirs in zip(messages, answers, strict=True)
        if not _is_alike(kind, ours := answer_of_ours(kind, message), theirs)
    ]
    assert differing == []


def _is_alike(kind: str, ours: str, theirs: str) -> bool:
    """Return whether two answers are equal; no client sees why a message of OAUTHBEARER is bad."""
    if kind == "oauth-bearer" and ours.startswith(REFUSED):
        return theirs.startswith(REFUSED)
    return ours == theirs
