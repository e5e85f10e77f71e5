"""The key set of an issuer (RFC 7517), out of a file that may be replaced while a node runs."""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, JWKRegistry, OctKey, OKPKey, RSAKey

_RSA_BITS_MIN: Final = 2_048
_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP", "HS": "oct"}
)
"""The types of keys by the first letters of the algorithms that they are for."""
_CHOSEN_BY: Final = frozenset({"alg", "key_ops", "kid", "use"})
"""The fields by which a key is chosen here, and not by the library that verifies with it."""
_SIGNATURE: Final = "sig"
_VERIFY: Final = "verify"


class InvalidKeySetError(ValueError):
    """A file that is not a key set."""


class JsonWebKey(NamedTuple):
    """A key of a set, with the fields by which it is chosen."""

    key: RSAKey | ECKey | OKPKey | OctKey
    fields: Mapping[str, object]

    def suits(self, algorithm: str, key_id: str | None) -> bool:
        """Return whether a token with this header may be signed by the key.

        As in Kafka, a token without a key id suits any, and a key without a use is for signatures.
        """
        operations = self.fields.get("key_ops", [_VERIFY])
        return (
            self.fields.get("kty") == _TYPES.get(algorithm[:2])
            and key_id in {None, self.fields.get("kid")}
            and self.fields.get("use", _SIGNATURE) == _SIGNATURE
            and isinstance(operations, list)
            and _VERIFY in operations
        )


def choose_key(
    keys: Sequence[JsonWebKey], *, algorithm: str, key_id: str | None
) -> JsonWebKey | None:
    """Return the first key that suits a token; of several, one for its algorithm comes first."""
    found = [key for key in keys if key.suits(algorithm, key_id)]
    if len(found) > 1:
        found = [key for key in found if key.fields.get("alg", algorithm) == algorithm]
    return found[0] if found else None


def read_keys(text: str) -> list[JsonWebKey]:
    """Return the keys of a set; those that cannot be used are left out, as in Kafka.

    Raises InvalidKeySetError for a text that is not a set.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidKeySetError("not a key set: no JSON") from error
    entries = cast("dict[str, object]", value).get("keys") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise InvalidKeySetError('not a key set: there is no list of "keys"')
    found = (_key(entry) for entry in cast("list[object]", entries))
    return [key for key in found if key is not None]


def _key(entry: object) -> JsonWebKey | None:
    if not isinstance(entry, dict):
        return None
    fields = cast("dict[str, object]", entry)
    material = {name: value for name, value in fields.items() if name not in _CHOSEN_BY}
    try:
        with warnings.catch_warnings():
            # A short key is left out below.
            warnings.simplefilter("ignore", SecurityWarning)
            key = JWKRegistry.import_key(cast("dict[str, str | list[str]]", material))
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    if isinstance(key, RSAKey) and key.raw_value.key_size < _RSA_BITS_MIN:
        return None
    return JsonWebKey(key, MappingProxyType(fields))


class JsonWebKeyFile:
    """The keys of a file, read again once the file has another time of modification."""

    def __init__(self, path: Path) -> None:
        """Read the file; raises InvalidKeySetError or OSError."""
        self._path = path
        self._modified_ns = path.stat().st_mtime_ns
        self._keys = read_keys(path.read_text("utf-8"))

    def note_missing(self, key_id: str, now_ms: int) -> None:
        """Do nothing: the file is looked at each time."""

    def current_keys(self) -> Sequence[JsonWebKey]:
        """Return the keys as they are in the file; raises InvalidKeySetError or OSError."""
        modified_ns = self._path.stat().st_mtime_ns
        if modified_ns != self._modified_ns:
            self._keys = read_keys(self._path.read_text("utf-8"))
            self._modified_ns = modified_ns
        return self._keys
