"""Tokens of OAUTHBEARER, unsecured ones, and the messages that bring them."""

import json
import time
from base64 import urlsafe_b64encode
from typing import Final

OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_CONFIG: Final = f"{OAUTH_MODULE} required;"
HOUR_S: Final = 3_600
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
