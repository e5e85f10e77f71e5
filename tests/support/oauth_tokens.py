"""Unsecured tokens of OAUTHBEARER, the messages that bring them, and their answers."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Final, TypeAlias

from tests.support.sasl_exchange import answers, decoded, frame

from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest

OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_CONFIG: Final = f"{OAUTH_MODULE} required;"
HOUR_S: Final = 3_600
_ROUNDED_MS: Final = 600_000
_SHAKE: Final = frame(SaslHandshakeRequest("OAUTHBEARER"), 1)
_VERSIONS: Final = frame(ApiVersionsRequest("test", "1"), 3)
Answer: TypeAlias = tuple[int, str | None, bytes, int] | None
"""The code, the text, the token and the lifetime of an answer, None at the end."""
UNSECURED: Final = '{"alg":"none"}'


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def claims(**changes: object) -> dict[str, object]:
    """Return the claims of a token of alice's for an hour, changed; None takes a claim out."""
    now_s = int(time.time())
    whole = {"sub": "alice", "iat": now_s, "exp": now_s + HOUR_S, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def unsecured(**changes: object) -> str:
    """Return a token without a signature, with changed claims."""
    return unsecured_of(json.dumps(claims(**changes)))


def unsecured_of(body: str, header: str = UNSECURED) -> str:
    """Return a token whose parts are these texts."""
    return f"{encoded(header.encode())}.{encoded(body.encode())}."


def message(token: str, *, authorization_id: str = "", more: str = "", auth: str = "") -> bytes:
    """Return the message with a token; `more` are extensions, each with its separator."""
    own = f"a={authorization_id}" if authorization_id else ""
    return f"n,{own},\x01{more}auth={auth or f'Bearer {token}'}\x01\x01".encode()


def bearer_outcome(port: int, messages: Sequence[bytes]) -> list[Answer]:
    """Return the answer to each message, None at the end of the connection.

    After the messages a request comes, whose answer is not told. The lifetime is rounded.
    """
    requests = [frame(SaslAuthenticateRequest(each), 2) for each in messages]
    found = answers(port, (_SHAKE, *requests, _VERSIONS))[1:]
    shown: list[Answer] = []
    for each in found[: len(messages)]:
        if each is None:
            shown.append(None)
            continue
        answer = decoded(each, SaslAuthenticateResponse, 2)
        lifetime = round(answer.session_lifetime_ms / _ROUNDED_MS)
        shown.append((answer.error_code, answer.error_message, bytes(answer.auth_bytes), lifetime))
    if len(found) > len(messages) and found[-1] is None:
        shown.append(None)
    return shown
