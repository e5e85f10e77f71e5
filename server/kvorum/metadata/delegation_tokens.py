"""Delegation tokens: their settings, their secrets, and the principals that may use them."""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Annotated

from kvorum.metadata.credentials_image import DelegationToken, DelegationTokensImage
from kvorum.metadata.standard_authorizer import Principal

FORGET_FACTOR = 2
FORGET_ABOVE = 1_000
"""The cache of secrets is cleared when it has more than this, and twice the tokens that exist."""


def _secret(text: str | None) -> bytes | None:
    return text.encode() if text else None


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """The settings ``delegation.token.*``; `secret_key` is None where tokens are disabled."""

    secret_key: Annotated[bytes | None, "delegation.token.secret.key", _secret] = field(
        default=None, repr=False
    )
    lifetime_ms_max: Annotated[int, "delegation.token.max.lifetime.ms"] = 604_800_000
    expiry_ms: Annotated[int, "delegation.token.expiry.time.ms"] = 86_400_000
    expiry_check_interval_ms: Annotated[int, "delegation.token.expiry.check.interval.ms"] = (
        3_600_000
    )


class TokenSecrets:
    """The secrets of tokens, with a lookup from secret to token.

    A secret is not in the log: it is the HMAC of the token's id. Computed secrets are cached, since
    nothing else leads from a secret to its token.
    """

    def __init__(self, settings: TokenSettings) -> None:
        self.settings = settings
        self._ids: dict[bytes, str] = {}
        self._known: set[str] = set()

    @property
    def is_enabled(self) -> bool:
        """Whether delegation tokens are enabled."""
        return self.settings.secret_key is not None

    def of(self, token_id: str) -> bytes:
        """Return the secret of a token; only where tokens are enabled."""
        key = self.settings.secret_key
        assert key is not None
        return hmac.digest(key, token_id.encode(), hashlib.sha512)

    def find(self, image: DelegationTokensImage, secret: bytes) -> str | None:
        """Return the id of the token with `secret`, None without one."""
        if secret not in self._ids:
            self._learn(image)
        token_id = self._ids.get(secret)
        return token_id if token_id is not None and token_id in image.tokens else None

    def _learn(self, image: DelegationTokensImage) -> None:
        if len(self._known) > max(FORGET_ABOVE, FORGET_FACTOR * len(image.tokens)):
            self._known.clear()
            self._ids.clear()
        for token_id in image.tokens:
            if token_id not in self._known:
                self._known.add(token_id)
                self._ids[self.of(token_id)] = token_id


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    """Return whether a token has expired."""
    return token.max_timestamp_ms < now_ms or token.expiration_timestamp_ms < now_ms


def may_renew(token: DelegationToken, principal: Principal) -> bool:
    """Return whether `principal` may change the expiry time of a token."""
    return principal.text == token.owner or principal.text in token.renewers


def is_involved(token: DelegationToken, principal: Principal) -> bool:
    """Return whether `principal` is the owner, the requester or a renewer of a token."""
    return may_renew(token, principal) or principal.text == token.requester
