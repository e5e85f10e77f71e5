"""PLAIN on the server's side: the users that it authenticates, and its refusals."""

import contextlib

import pytest
from tests.support.compared_as_a_whole import PasswordComparedAsAWhole

from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_server import AuthenticatedUser, SaslAuthenticationError

OTHER_USER = "Client requested an authorization id that is different from username"
PASSWORDS = {"alice": "as", "bob": "bs", "nobody": ""}


@pytest.mark.parametrize("token", [b"\0alice\0as", b"alice\0alice\0as"])
def test_a_user_with_the_right_password_is_let_in(token: bytes) -> None:
    server = PlainServer(PASSWORDS)
    assert server.user is None
    assert server.evaluate(token) == b""
    assert server.user == AuthenticatedUser("alice")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0as", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0as\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0as\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0", "Authentication failed: username not specified"),
        (b"bob\0alice\0", "Authentication failed: password not specified"),
        (b"\0nobody\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0bs", "Authentication failed: Invalid username or password"),
        (b"\0carol\0as", "Authentication failed: Invalid username or password"),
        (b"\0Alice\0as", "Authentication failed: Invalid username or password"),
        (b"\0alice\0as ", "Authentication failed: Invalid username or password"),
        (b"\0alice\0a\xff", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0as", f"Authentication failed: {OTHER_USER}"),
    ],
)
def test_a_token_is_refused_for_the_first_fault_in_kafkas_order(token: bytes, message: str) -> None:
    server = PlainServer(PASSWORDS)
    with pytest.raises(SaslAuthenticationError) as raised:
        server.evaluate(token)
    assert str(raised.value) == message
    assert server.user is None


@pytest.mark.parametrize(("given", "is_let_in"), [(b"as", True), (b"at", False)])
def test_the_time_of_a_comparison_tells_nothing_of_the_password(
    given: bytes, is_let_in: bool
) -> None:
    server = PlainServer({"alice": PasswordComparedAsAWhole("as")})
    with contextlib.suppress(SaslAuthenticationError):
        server.evaluate(b"\0alice\0" + given)
    assert (server.user is not None) is is_let_in
