"""A raw client's way through SASL, request by request."""

from typing import Final

from tests.support.raw_client import RawClient

from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 2
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"

SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM_CONFIG: Final = f"{SCRAM_MODULE} required;"


def plain_token(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def plain_config(**passwords: str) -> str:
    """Return the text of `sasl.jaas.config` with the users that a listener knows."""
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    return f"{PLAIN_MODULE} required {users};"


def shake_hands(client: RawClient, mechanism: str) -> SaslHandshakeResponse:
    return client.ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, HANDSHAKE_VERSION)


def send_token(client: RawClient, token: bytes) -> SaslAuthenticateResponse:
    request = SaslAuthenticateRequest(token)
    return client.ask(request, SaslAuthenticateResponse, AUTHENTICATE_VERSION)


def log_in(client: RawClient, user: str, password: str) -> SaslAuthenticateResponse:
    """Authenticate by PLAIN."""
    shake_hands(client, "PLAIN")
    return send_token(client, plain_token(user, password))
