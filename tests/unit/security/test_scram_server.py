"""SCRAM on the server's side: RFC 7677's exchange, and what Kafka refuses or lets pass."""

import contextlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import digest
from typing import Final

import pytest
from tests.support.compared_as_a_whole import ComparedAsAWhole

from kvorum.metadata.credentials_image import ScramCredential, ScramMechanism
from kvorum.security.sasl_server import (
    AuthenticatedUser,
    SaslAuthenticationError,
    SaslBrokenError,
    SaslError,
)
from kvorum.security.scram_server import ScramLogin, ScramServer

SHA_256: Final = ScramMechanism.SCRAM_SHA_256
SHA_512: Final = ScramMechanism.SCRAM_SHA_512
NAMES: Final = {SHA_256: "sha256", SHA_512: "sha512"}
SALT: Final = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE: Final = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE: Final = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
NONCE: Final = CLIENT_NONCE + SERVER_NONCE
FIRST: Final = f"n=user,r={CLIENT_NONCE}"
ANSWER: Final = f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
# Of RFC 7677, and of Kafka's own classes with the same inputs.
VECTORS: Final = {
    SHA_256: (
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
    SHA_512: (
        "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
        "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
    ),
}


def salted(mechanism: ScramMechanism, password: str = "pencil") -> bytes:
    return pbkdf2_hmac(NAMES[mechanism], password.encode(), SALT, 4096)


def credential(mechanism: ScramMechanism = SHA_256, iterations: int = 4096) -> ScramCredential:
    name = NAMES[mechanism]
    client_key, server_key = (
        digest(salted(mechanism), text, name) for text in (b"Client Key", b"Server Key")
    )
    return ScramCredential(SALT, new_hash(name, client_key).digest(), server_key, iterations)


def server(
    mechanism: ScramMechanism = SHA_256, user: str = "user", iterations: int = 4096
) -> ScramServer:
    login = ScramLogin(credential(mechanism, iterations), AuthenticatedUser(user))
    known = {user: login}
    return ScramServer(mechanism, lambda first: known.get(first.user), SERVER_NONCE)


def proof(signed: str, password: str = "pencil") -> str:
    """Return the proof of a client that has signed this."""
    client_key = digest(salted(SHA_256, password), b"Client Key", "sha256")
    stored_key = new_hash("sha256", client_key).digest()
    signature = digest(stored_key, signed.encode(), "sha256")
    return b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()


def final(first: str = FIRST, own: str = f"c=biws,r={NONCE}", more: str = "", **of: str) -> bytes:
    """Return the final message; `more` is behind what the client has signed."""
    return f"{own}{more},p={proof(f'{first},{ANSWER},{own}', **of)}".encode()


@pytest.mark.parametrize("mechanism", VECTORS)
def test_the_exchange_is_that_of_the_vectors(mechanism: ScramMechanism) -> None:
    own = server(mechanism)
    client_proof, server_signature = VECTORS[mechanism]
    assert own.evaluate(f"n,,{FIRST}".encode()) == ANSWER.encode()
    assert own.user is None
    answer = own.evaluate(f"c=biws,r={NONCE},p={client_proof}".encode())
    assert answer == f"v={server_signature}".encode()
    assert own.user == AuthenticatedUser("user")


@pytest.mark.parametrize(
    "first",
    [
        *("", "n", f"y,,{FIRST}", f"p=tls-unique,,{FIRST}", f"n,a=,{FIRST}", "n,,n=user,r="),
        *(f"n,,{FIRST},", f"n,,{FIRST},foo=", f"n,,n=,r={CLIENT_NONCE}", f"n,,n=a=b,r={NONCE}"),
        *(f"n,,n=us\N{LATIN SMALL LETTER E WITH ACUTE}r,r={NONCE}", f"n,,{FIRST}\n"),
        *(f"n,,n=other,r={NONCE}", f"n,,n=USER,r={NONCE}"),
    ],
)
def test_a_first_message_of_another_form_or_user_is_refused_without_a_reason(first: str) -> None:
    with pytest.raises(SaslError) as raised:
        server().evaluate(first.encode())
    assert not isinstance(raised.value, SaslAuthenticationError)


def test_the_user_is_unescaped_and_the_authorization_id_is_not() -> None:
    name = "a=2Cb=3Dc"
    own = server(user="a,b=c")
    assert own.evaluate(f"n,,n={name},r={CLIENT_NONCE}".encode()) == ANSWER.encode()
    with pytest.raises(SaslAuthenticationError, match="authorization id that is different"):
        server(user="a,b=c").evaluate(f"n,a={name},n={name},r={CLIENT_NONCE}".encode())
    assert server().evaluate(f"n,a=user,{FIRST}".encode()) == ANSWER.encode()


def test_few_iterations_are_refused() -> None:
    with pytest.raises(SaslError, match="4095"):
        server(iterations=4095).evaluate(f"n,,{FIRST}".encode())


REFUSED: Final[dict[str, Callable[[], bytes]]] = {
    "wrong password": lambda: final(password="pen"),
    "other nonce": lambda: final(own=f"c=biws,r={CLIENT_NONCE}"),
    "first message again": f"n,,{FIRST}".encode,
    "no proof": f"c=biws,r={NONCE}".encode,
    "signed extension": lambda: final(own=f"c=biws,r={NONCE},a=1"),
    "bytes behind": lambda: final() + b"\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_final_message_is_refused_without_a_reason(what: str) -> None:
    own = server()
    own.evaluate(f"n,,{FIRST}".encode())
    with pytest.raises(SaslError) as raised:
        own.evaluate(REFUSED[what]())
    assert not isinstance(raised.value, SaslAuthenticationError)
    assert own.user is None


@pytest.mark.parametrize(("password", "is_let_in"), [("pencil", True), ("pen", False)])
def test_the_time_of_a_comparison_tells_nothing_of_the_key(password: str, is_let_in: bool) -> None:
    known = credential()
    secret = replace(known, stored_key=ComparedAsAWhole(known.stored_key))
    login = ScramLogin(secret, AuthenticatedUser("user"))
    own = ScramServer(SHA_256, lambda _: login, SERVER_NONCE)
    own.evaluate(f"n,,{FIRST}".encode())
    with contextlib.suppress(SaslError):
        own.evaluate(final(password=password))
    assert (own.user is not None) is is_let_in


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_proof_of_another_length_ends_the_connection(length: int) -> None:
    own = server()
    own.evaluate(f"n,,{FIRST}".encode())
    text = b64encode(bytes(length)).decode()
    with pytest.raises(SaslBrokenError):
        own.evaluate(f"c=biws,r={NONCE},p={text}".encode())


@pytest.mark.parametrize(
    ("first", "signed", "message"),
    [
        # Channel binding is not looked at, nor are extensions that the client has not signed.
        ("", "", final(own=f"c=AAAA,r={NONCE}")),
        ("", "", final(more=",a=1")),
        (",a=1,b=2", ",a=1,b=2", b""),
        (",foo=x=y", ",foo=x=y", b""),
        # Kafka signs several extensions in an order that is another one in each process.
        (",b=1,a=2", ",b=1,a=2", b""),
        (",a=1,a=2", ",a=2", b""),
    ],
)
def test_what_kafka_lets_pass_is_let_in(first: str, signed: str, message: bytes) -> None:
    own = server()
    own.evaluate(f"n,,{FIRST}{first}".encode())
    own.evaluate(message or final(first=f"{FIRST}{signed}"))
    assert own.user == AuthenticatedUser("user")


def test_a_reserved_part_that_the_client_signs_makes_its_proof_wrong() -> None:
    own = server()
    own.evaluate(f"n,,m=x,{FIRST}".encode())
    with pytest.raises(SaslError):
        own.evaluate(final(first=f"m=x,{FIRST}"))
