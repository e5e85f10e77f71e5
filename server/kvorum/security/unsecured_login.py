"""Unsecured tokens that a client writes for itself, by options of its login module (KIP-255)."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kvorum.security.client_token import ClientToken, client_token
from kvorum.security.errors import InvalidOAuthSettingsError
from kvorum.wire.java_text import java_trim, parse_java_double, parse_java_integer

_OPTION: Final = "unsecuredLogin"
_TEXT: Final = f"{_OPTION}StringClaim_"
_NUMBER: Final = f"{_OPTION}NumberClaim_"
_LIST: Final = f"{_OPTION}ListClaim_"
EXTENSION: Final = f"{_OPTION}Extension_"
_LIFETIME: Final = f"{_OPTION}LifetimeSeconds"
_LIFETIME_S: Final = "3600"
_CALCULATED: Final = frozenset({"iat", "exp"})
"""The claims that no option may set."""
_LONG_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """Writes tokens with the claims of the options, which are those of a login module."""

    options: Mapping[str, str] = field(repr=False)

    def retrieve(
        self,
        wall_s: Callable[[], float],
        pause_s: Callable[[float], None],  # noqa: ARG002 - nothing is waited for
    ) -> ClientToken:
        """Return a new token; raises InvalidTokenError, InvalidOAuthSettingsError."""
        now_s = wall_s()
        claims = {"exp": now_s + self._lifetime_s(), "iat": now_s, **dict(self._claims())}
        text = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
        return client_token(
            text,
            user_claim=self._name("PrincipalClaimName") or "sub",
            scope_claim=self._name("ScopeClaimName") or "scope",
        )

    def check(self) -> None:
        """Raise InvalidOAuthSettingsError for options that no token can be written with."""
        self._lifetime_s()
        claims = dict(self._claims())
        user_claim = self._name("PrincipalClaimName") or "sub"
        user = claims.get(user_claim)
        if not isinstance(user, str) or not java_trim(user):
            raise InvalidOAuthSettingsError(
                f"No principal name in JWT claim: {user_claim}: set the option "
                f"{_TEXT}{user_claim} of the login module"
            )

    def _name(self, suffix: str) -> str:
        return java_trim(self.options.get(_OPTION + suffix, ""))

    def _lifetime_s(self) -> int:
        text = self.options.get(_LIFETIME, _LIFETIME_S)
        try:
            return parse_java_integer(text, bits=_LONG_BITS)
        except ValueError as error:
            raise InvalidOAuthSettingsError(
                f"The option {_LIFETIME} is not a number of seconds: {text}"
            ) from error

    def _claims(self) -> Iterator[tuple[str, object]]:
        for option, value in self.options.items():
            for prefix, read in _READERS.items():
                name = option.removeprefix(prefix)
                if not name or name == option:
                    continue
                if name in _CALCULATED:
                    raise InvalidOAuthSettingsError(f"Cannot explicitly set the '{name}' claim")
                yield name, read(option, value)


def _text(_: str, value: str) -> str:
    return value


def _number(option: str, value: str) -> float:
    try:
        return parse_java_double(value)
    except ValueError as error:
        raise InvalidOAuthSettingsError(f"The option {option} is not a number: {value}") from error


def _list(_: str, value: str) -> list[str]:
    """Return a list whose first character is what separates the others."""
    return value[1:].split(value[0]) if len(value) > 1 else []


_READERS: Final[Mapping[str, Callable[[str, str], object]]] = {
    _TEXT: _text,
    _NUMBER: _number,
    _LIST: _list,
}


def _encoded(part: Mapping[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
