"""The credentials by which SCRAM knows clients with a delegation token (KIP-48)."""

from base64 import b64encode
from collections.abc import Callable
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import digest as hmac_digest
from typing import Final

from kvorum.metadata.credentials_image import (
    SCRAM_DIGESTS,
    SCRAM_ITERATIONS_MIN,
    DelegationTokensImage,
    ScramCredential,
    ScramMechanism,
)
from kvorum.metadata.delegation_tokens import TokenSecrets
from kvorum.metadata.standard_authorizer import Principal
from kvorum.security.sasl_server import AuthenticatedUser
from kvorum.security.scram_server import ScramLogin

_FORGET_FACTOR: Final = 4
_FORGET_ABOVE: Final = 1_000
"""The credentials are forgotten where there are more than this, and four times the tokens."""


class TokenCredentials:
    """The credentials of delegation tokens: the password is the secret of a token, as text.

    Like each of Kafka's nodes, this one makes them for itself. It keeps what it has computed, since
    hashing takes milliseconds.
    """

    def __init__(self, secrets: TokenSecrets, new_salt: Callable[[], bytes]) -> None:
        self._secrets = secrets
        self._new_salt = new_salt
        self._known: dict[tuple[ScramMechanism, str], ScramCredential] = {}

    def find(
        self, image: DelegationTokensImage, mechanism: ScramMechanism, token_id: str
    ) -> ScramLogin | None:
        """Return the login of the owner of a token, None without such a token.

        As in Kafka, a token may have expired, and the type of its owner does not count.
        """
        token = image.tokens.get(token_id)
        if token is None or not self._secrets.is_enabled:
            return None
        if len(self._known) > max(_FORGET_ABOVE, _FORGET_FACTOR * len(image.tokens)):
            self._known.clear()
        credential = self._known.get((mechanism, token_id))
        if credential is None:
            credential = self._new_credential(mechanism, token_id)
            self._known[mechanism, token_id] = credential
        owner = Principal.from_text(token.owner)
        user = AuthenticatedUser(owner.name, token.expiration_timestamp_ms, is_by_token=True)
        return ScramLogin(credential, user)

    def _new_credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        name = SCRAM_DIGESTS[mechanism]
        password = b64encode(self._secrets.of(token_id))
        salt = self._new_salt()
        salted = pbkdf2_hmac(name, password, salt, SCRAM_ITERATIONS_MIN)
        client_key = hmac_digest(salted, b"Client Key", name)
        return ScramCredential(
            salt=salt,
            stored_key=new_hash(name, client_key).digest(),
            server_key=hmac_digest(salted, b"Server Key", name),
            iterations=SCRAM_ITERATIONS_MIN,
        )
