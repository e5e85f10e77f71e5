"""Unsecured tokens of OAUTHBEARER: anybody can write one, so that they prove nothing (KIP-255).

Kafka takes them for true where no other check of tokens is set; so they are for tests.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias, cast

from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.oauth_bearer_server import BearerToken, InvalidTokenError, checked_user
from kvorum.security.sasl_server import SaslBrokenError
from kvorum.wire.java_base64 import decode_java_base64_url

_NUMBER_GOES_ON: Final = re.compile(r"[^ \t\r\n]")
_WORD_GOES_ON: Final = re.compile(r"[0-9A-Za-z_\x7f]")
"""The characters that Jackson does not take after a number, and after true, false and null."""
_JSON_BLANK: Final = " \t\r\n"
_PARTS: Final = 3
_OPTION: Final = "unsecuredValidator"
_LONG_MAX: Final = 2**63 - 1
_BLANK: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's String.trim() takes away."""
Claim: TypeAlias = str | int | float | list[str]


@dataclass(frozen=True, slots=True)
class UnsecuredTokenSettings:
    """Kafka's options `unsecuredValidator…` of the login module; the skew is in milliseconds."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0


def unsecured_token_settings(options: Mapping[str, str]) -> UnsecuredTokenSettings:
    """Read the options of a login module; raises InvalidJaasConfigError for a skew of no number."""
    skew = options.get(f"{_OPTION}AllowableClockSkewMs", "").strip(_BLANK) or "0"
    if not skew.isdecimal():
        raise InvalidJaasConfigError(
            f"{_OPTION}AllowableClockSkewMs is not a number of milliseconds: {skew}"
        )
    return UnsecuredTokenSettings(
        principal_claim=options.get(f"{_OPTION}PrincipalClaimName", "").strip(_BLANK) or "sub",
        scope_claim=options.get(f"{_OPTION}ScopeClaimName", "").strip(_BLANK) or "scope",
        required_scope=tuple(options.get(f"{_OPTION}RequiredScope", "").split()),
        clock_skew_ms=int(skew),
    )


class UnsecuredTokenValidator:
    """Checks that a token says what it has to say; `wall_ms` has the milliseconds since 1970."""

    def __init__(self, settings: UnsecuredTokenSettings, wall_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._wall_ms = wall_ms

    def __call__(self, token: str) -> BearerToken:
        """Return what the token says of its user; raises InvalidTokenError or SaslBrokenError."""
        claims = _claims(token)
        expires_at_s = _number(claims, "exp")
        if expires_at_s is None:
            raise InvalidTokenError("No expiration time in JWT")
        user = _user(claims, self._settings.principal_claim)
        scope = _scope(claims, self._settings.scope_claim)
        self._check_times(expires_at_s, _number(claims, "iat"))
        if not scope.issuperset(self._settings.required_scope):
            raise InvalidTokenError("a required scope is missing", self._settings.required_scope)
        return BearerToken(user, _milliseconds(expires_at_s))

    def _check_times(self, expires_at_s: float, issued_at_s: float | None) -> None:
        now_ms = self._wall_ms()
        skew_ms = self._settings.clock_skew_ms
        if issued_at_s is not None and issued_at_s * 1000 > now_ms + skew_ms:
            raise InvalidTokenError("the token is issued in the future")
        if expires_at_s * 1000 <= now_ms - skew_ms:
            raise InvalidTokenError("the token has expired")
        if issued_at_s is not None and expires_at_s <= issued_at_s:
            raise InvalidTokenError("the token expires before it is issued")


def _claims(token: str) -> Mapping[str, Claim]:
    """Return the claims of a token without a signature."""
    if ".." in token:
        raise InvalidTokenError("Malformed compact serialization contains '..'")
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise InvalidTokenError("a token does not have three parts")
    header = json_object_of(parts[0])
    claims = json_object_of(parts[1])
    algorithm = header.get("alg")
    if algorithm is None:
        # Kafka's check fails.
        raise SaslBrokenError("a token of OAUTHBEARER without an algorithm")
    if algorithm != "none":
        raise InvalidTokenError("Unsecured JWS must have 'none' for an algorithm")
    if parts[2]:
        raise InvalidTokenError("Unsecured JWS must not contain a digital signature")
    return claims


def json_object_of(part: str) -> Mapping[str, Claim]:
    """Return the fields of an object in a part of a token; as in Kafka, other values have none.

    Raises InvalidTokenError.
    """
    try:
        decoded = decode_java_base64_url(part)
    except ValueError as error:
        raise InvalidTokenError("malformed Base64 URL encoded value") from error
    try:
        text = _text_at_start(decoded).lstrip(_JSON_BLANK)
        # As in Kafka, what follows the value does not count.
        is_blank = not decoded.strip(_JSON_BLANK.encode())
        value, end = (None, 0) if is_blank else _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTokenError("malformed JSON") from error
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    goes_on = _NUMBER_GOES_ON if is_number else _WORD_GOES_ON
    if not isinstance(value, dict | list | str) and goes_on.match(text, end):
        raise InvalidTokenError("malformed JSON")
    if not isinstance(value, dict):
        return {}
    return {key: _claim(each) for key, each in cast("dict[str, object]", value).items()}


def _text_at_start(content: bytes) -> str:
    """Return the text of bytes up to the first that is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        return content[: error.start].decode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _claim(value: object) -> Claim:
    if isinstance(value, list):
        return [_text(each) for each in cast("list[object]", value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return _text(value)


def _text(value: object) -> str:
    """Return a value as Jackson's asText() has it: that of an object or a list is empty."""
    if isinstance(value, str):
        return value
    return "" if isinstance(value, dict | list) else json.dumps(value)


def _number(claims: Mapping[str, Claim], name: str) -> float | None:
    value = claims.get(name)
    if isinstance(value, str | list):
        raise InvalidTokenError(f"The '{name}' claim is not a number")
    try:
        return None if value is None else float(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf


def _user(claims: Mapping[str, Claim], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip(_BLANK):
        raise InvalidTokenError("No principal name in JWT claim")
    return checked_user(value)


def _scope(claims: Mapping[str, Claim], name: str) -> frozenset[str]:
    value = claims.get(name, "")
    if isinstance(value, int | float):
        raise InvalidTokenError(f"The '{name}' claim is neither a text nor a list")
    words = [value] if isinstance(value, str) else value
    return frozenset(word.strip(_BLANK) for word in words) - {""}


def _milliseconds(seconds: float) -> int:
    """Return a time as Java rounds it."""
    return _LONG_MAX if seconds * 1000 >= _LONG_MAX else math.floor(seconds * 1000 + 0.5)
