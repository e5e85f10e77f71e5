"""Signed tokens of OAUTHBEARER (RFC 7519), verified by the keys of their issuer (KIP-768)."""

import json
import math
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn, Protocol, cast

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedHeaderError
from joserfc.jws import JWSRegistry
from joserfc.registry import Header

from kvorum.security.errors import InvalidOAuthSettingsError
from kvorum.security.json_web_keys import InvalidKeySetError, JsonWebKey, JsonWebKeyFile, choose_key
from kvorum.security.oauth_bearer_server import BearerToken, InvalidTokenError, checked_user
from kvorum.security.oauth_settings import OAuthSettings
from kvorum.security.sasl_server import SaslBrokenError

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"),
)
"""The algorithms of signatures. A token without a signature is refused."""
_BLANK: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's String.trim() takes away."""
_PARTS: Final = 3
_TEXTS: Final = ("iss", "sub", "jti")
"""The claims that are texts where a token has them, whether they are needed or not."""
_TIME_S_MAX: Final = (2**63 - 1) // 1000
_LENGTH_MAX: Final = 2**31 - 1
_PAYLOAD_ENCODING: Final = "b64"
"""The only parameter of a header that a token may demand to be understood (RFC 7797)."""


class _AnyHeader(JWSRegistry):
    """The rules for headers: the parameters that are not known do not count (RFC 7515, 4).

    A token is no longer than the frame in which it has come, so no part of it has another limit.
    """

    max_header_length = _LENGTH_MAX
    max_payload_length = _LENGTH_MAX
    max_signature_length = _LENGTH_MAX

    def __init__(self, algorithm: str) -> None:
        super().__init__(algorithms=[algorithm])

    def check_header(self, header: Header) -> None:
        """Refuse a header that demands to be understood and is not; raises UnsupportedHeaderError.

        As for Kafka, what it demands need not be there.
        """
        critical: object = header.get("crit", [])
        names = cast("list[object]", critical) if isinstance(critical, list) else [None]
        if any(name != _PAYLOAD_ENCODING for name in names):
            raise UnsupportedHeaderError(f"critical parameters of a header: {critical}")


class KeySource(Protocol):
    """The keys of an issuer."""

    def current_keys(self) -> Sequence[JsonWebKey]:
        """Return the keys; raises InvalidKeySetError or OSError."""
        ...

    def note_missing(self, key_id: str, now_ms: int) -> None:
        """Note that no key suits a token that names this one; `now_ms` counts from 1970."""
        ...


class SignedTokenValidator:
    """Verifies the signature of a token, its audience, its issuer and its times.

    `keys` has the keys of the issuer, `wall_ms` the milliseconds since 1970.
    """

    def __init__(
        self,
        settings: OAuthSettings,
        keys: KeySource,
        wall_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._wall_ms = wall_ms

    def __call__(self, token: str) -> BearerToken:
        """Return what a verified token says of its user.

        Raises InvalidTokenError, or SaslBrokenError for a time that Kafka cannot count.
        """
        claims = _json_object(self._verified(token))
        expires_at_s = _time(claims, "exp")
        issued_at_s = _time(claims, "iat")
        if expires_at_s is None or issued_at_s is None:
            raise InvalidTokenError("the token does not say when it is issued, and expires")
        self._check_times(expires_at_s, issued_at_s, _time(claims, "nbf"))
        self._check_audience(claims.get("aud"))
        self._check_issuer(claims)
        _check_scope(claims.get(self._settings.scope_claim))
        user = checked_user(_text(claims, self._settings.subject_claim))
        if max(expires_at_s, issued_at_s) > _TIME_S_MAX:
            raise SaslBrokenError("a time that Kafka cannot count in milliseconds")
        return BearerToken(user, expires_at_s * 1000)

    def _verified(self, token: str) -> bytes:
        """Return the payload of a token whose signature is that of one of the keys."""
        parts = token.split(".")
        if len(parts) != _PARTS or not all(parts):
            raise InvalidTokenError("a token does not have three parts")
        header = _json_object(_decoded(parts[0]))
        algorithm = header.get("alg")
        key_id = header.get("kid")
        if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
            raise InvalidTokenError("the algorithm or the key of the signature is not a text")
        if algorithm not in ALGORITHMS:
            raise InvalidTokenError("the algorithm of the signature is not one of those served")
        try:
            keys = self._keys.current_keys()
        except (InvalidKeySetError, OSError) as error:
            raise InvalidTokenError(f"the keys of the issuer cannot be read: {error}") from error
        key = choose_key(keys, algorithm=algorithm, key_id=key_id)
        if key is None:
            if key_id is not None:
                self._keys.note_missing(key_id, self._wall_ms())
            raise InvalidTokenError("no key of the issuer suits the token")
        rules = _AnyHeader(algorithm)
        try:
            return jws.deserialize_compact(token, key.key, registry=rules).payload
        except (JoseError, ValueError) as error:
            raise InvalidTokenError(f"the signature is not verified: {error}") from error

    def _check_times(self, expires_at_s: int, issued_at_s: int, not_before_s: int | None) -> None:
        now_s = self._wall_ms() // 1000
        skew_s = self._settings.clock_skew_seconds
        if now_s - skew_s >= expires_at_s:
            raise InvalidTokenError("the token has expired")
        if expires_at_s < issued_at_s:
            raise InvalidTokenError("the token expires before it is issued")
        if not_before_s is None:
            return
        if expires_at_s < not_before_s or now_s + skew_s < not_before_s:
            raise InvalidTokenError("the token is not valid yet")

    def _check_audience(self, audience: object) -> None:
        expected = self._settings.expected_audience
        if not expected:
            return
        names = cast("list[object]", audience) if isinstance(audience, list) else [audience]
        if not all(isinstance(name, str) for name in names):
            raise InvalidTokenError("the audience of the token is not a text, nor a list of those")
        if not set(names).intersection(expected):
            raise InvalidTokenError("the token is for another audience")

    def _check_issuer(self, claims: Mapping[str, object]) -> None:
        for name in _TEXTS:
            if not isinstance(claims.get(name), str | None):
                raise InvalidTokenError(f"the claim {name} of the token is not a text")
        expected = self._settings.expected_issuer
        if expected and claims.get("iss") != expected:
            raise InvalidTokenError("the token is by another issuer")


def file_validator(
    settings: OAuthSettings, path: Path, wall_ms: Callable[[], int]
) -> SignedTokenValidator:
    """Return what verifies tokens by a file; raises InvalidOAuthSettingsError if it has no keys."""
    try:
        keys = JsonWebKeyFile(path)
    except (InvalidKeySetError, OSError) as error:
        raise InvalidOAuthSettingsError(f"{path} cannot be read as a key set: {error}") from error
    return SignedTokenValidator(settings, keys, wall_ms)


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError as error:
        raise InvalidTokenError("a part of the token is not base64") from error


def _json_object(data: bytes) -> Mapping[str, object]:
    """Return an object of JSON; names may not come twice, so that all readers find the same."""
    try:
        value: object = json.loads(
            data, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise InvalidTokenError("a part of the token is not JSON") from error
    if not isinstance(value, dict):
        raise InvalidTokenError("a part of the token is not an object of JSON")
    return cast("dict[str, object]", value)


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _time(claims: Mapping[str, object], name: str) -> int | None:
    """Return a time in whole seconds, None where the token does not have it."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        raise InvalidTokenError(f"the claim {name} of the token is not a time")
    return int(value)


def _text(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    text = value.strip(_BLANK) if isinstance(value, str) else ""
    if not text:
        raise InvalidTokenError(f"the claim {name} of the token is not a text")
    return text


def _check_scope(scope: object) -> None:
    """Refuse a scope with a blank word, or with one that comes twice."""
    words = cast("list[object]", scope) if isinstance(scope, list) else [scope]
    if scope is None or not isinstance(scope, list | str):
        return
    texts = [word.strip(_BLANK) if isinstance(word, str) else "" for word in words]
    if "" in texts or len(set(texts)) != len(texts):
        raise InvalidTokenError("the scope of the token has a blank word, or one twice")
