"""A token of a client's own, with the checks of Kafka's ClientJwtValidator: nothing is verified."""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from kvorum.security.oauth_bearer_server import InvalidTokenError
from kvorum.security.unsecured_token import json_object_of
from kvorum.wire.java_text import java_trim

_PARTS: Final = 3
_MALFORMED: Final = (
    "Malformed JWT provided; expected three sections (header, payload, and signature)"
)


class ClientToken(NamedTuple):
    """A token, the user in it, and the times from which and until which it is good.

    Times are in milliseconds since 1970; `starts_at_ms` is None where the token does not say it.
    """

    text: str
    user: str
    starts_at_ms: int | None
    expires_at_ms: int

    def __repr__(self) -> str:
        """Return the user and the end alone."""
        return f"ClientToken({self.user}, {self.expires_at_ms})"


def client_token(text: str, *, user_claim: str, scope_claim: str) -> ClientToken:
    """Return a token with what it says of itself; raises InvalidTokenError, with Kafka's text."""
    trimmed = java_trim(text)
    parts = trimmed.split(".")
    if len(parts) != _PARTS or not (parts[0] and parts[1]):
        raise InvalidTokenError(_MALFORMED)
    claims = json_object_of(parts[1])
    _check_scope(scope_claim, claims.get(scope_claim))
    expires_at_ms = _milliseconds("exp", claims)
    if expires_at_ms is None:
        raise InvalidTokenError("exp value must be non-null")
    user = _user(user_claim, claims.get(user_claim))
    return ClientToken(trimmed, user, _milliseconds("iat", claims), expires_at_ms)


def _milliseconds(name: str, claims: Mapping[str, object]) -> int | None:
    """Return a time, of which whole seconds count, as in Kafka."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidTokenError(f"{name} value is not a number")
    if value < 0:
        raise InvalidTokenError(
            f'{name} value must be non-negative; value given was "{int(value) * 1000}"'
        )
    return int(value) * 1000


def _user(name: str, value: object) -> str:
    if value is None:
        raise InvalidTokenError(f"{name} value must be non-null")
    if not isinstance(value, str):
        raise InvalidTokenError(f"{name} value is not a text")
    if not value:
        raise InvalidTokenError(f"{name} value must be non-empty")
    if not java_trim(value):
        raise InvalidTokenError(f"{name} value must not contain only whitespace")
    return java_trim(value)


def _check_scope(name: str, value: object) -> None:
    words = cast("list[str]", value) if isinstance(value, list) else []
    seen: set[str] = set()
    for word in map(java_trim, words):
        if word in seen:
            raise InvalidTokenError(
                f"{name} value must not contain duplicates - {word} already present"
            )
        seen.add(word)
