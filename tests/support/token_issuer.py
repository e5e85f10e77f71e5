"""An issuer of signed tokens of OAUTHBEARER, with its keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, RSAKey
from tests.support.oauth_tokens import claims, encoded

AUDIENCE: Final = "kafka"
ISSUER: Final = "https://issuer.example"
Key = RSAKey | ECKey | OctKey


def new_rsa_key(key_id: str | None = None, bits: int = 2_048) -> RSAKey:
    return RSAKey.generate_key(bits, {} if key_id is None else {"kid": key_id})


@dataclass(frozen=True)
class Issuer:
    """An issuer whose tokens are signed by its first key, unless another one is given."""

    keys: Sequence[Key] = field(default_factory=lambda: [new_rsa_key("first")])

    def key_set(self) -> str:
        """Return the public keys, as an issuer publishes them."""
        return json.dumps({"keys": [_public(key) for key in self.keys]})

    def token(
        self,
        *,
        key: Key | None = None,
        header: Mapping[str, object] | None = None,
        **changes: object,
    ) -> str:
        """Return a token of alice's for an hour, with changed claims; None takes a claim out."""
        whole = claims(**{"aud": AUDIENCE, "iss": ISSUER, **changes})
        return self.token_of(json.dumps(whole), key=key, header=header)

    def token_of(
        self, body: str, *, key: Key | None = None, header: Mapping[str, object] | None = None
    ) -> str:
        """Return a token with this text for its claims."""
        used = key or self.keys[0]
        whole = {"alg": "RS256", **({"kid": used.kid} if used.kid else {}), **(header or {})}
        named = {name: value for name, value in whole.items() if value is not None}
        return jws.serialize_compact(named, body.encode(), used, algorithms=[str(named["alg"])])

    def token_with(self, header: Mapping[str, object], **changes: object) -> str:
        """Return a token of RS256 with more in its header than a library signs."""
        key = self.keys[0]
        assert isinstance(key, RSAKey)
        assert key.kid is not None
        whole = claims(**{"aud": AUDIENCE, "iss": ISSUER, **changes})
        parts = ({"alg": "RS256", "kid": key.kid, **header}, whole)
        signed = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        private = key.private_key
        assert private is not None
        return f"{signed}.{encoded(private.sign(signed.encode(), PKCS1v15(), SHA256()))}"


def _public(key: Key) -> dict[str, object]:
    return dict(key.as_dict(private=isinstance(key, OctKey)))
