"""The secrets of delegation tokens, as both sides have to make them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

TOKEN_KEY: Final = "a secret of both sides"
"""What ``delegation.token.secret.key`` has to be for scripts with ``$secret:N``."""


def secret_of(token_id: str) -> str:
    """Return the secret of a delegation token, as JSON shows bytes."""
    secret = hmac.digest(TOKEN_KEY.encode(), token_id.encode(), hashlib.sha512)
    return base64.b64encode(secret).decode()
