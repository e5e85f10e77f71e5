"""SCRAM (RFC 5802, RFC 7677) on the server's side, with a user's stored keys."""

from base64 import b64encode
from collections.abc import Callable
from hashlib import new as new_hash
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import NamedTuple, TypeAlias

from kvorum.metadata.credentials_image import (
    SCRAM_DIGESTS,
    SCRAM_ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
)
from kvorum.security.sasl_server import (
    OTHER_AUTHORIZATION_ID,
    AuthenticatedUser,
    SaslAuthenticationError,
    SaslBrokenError,
    SaslError,
)
from kvorum.security.scram_messages import ClientFinal, ClientFirst, ScramSyntaxError, ServerFirst


class ScramLogin(NamedTuple):
    """The credential that a client has to know the password of, and the user that it is then."""

    credential: ScramCredential
    user: AuthenticatedUser


FindLogin: TypeAlias = Callable[[ClientFirst], ScramLogin | None]
"""Returns the login that a first message names for a mechanism, None without one."""


class _Begun(NamedTuple):
    """An exchange after the first message."""

    login: ScramLogin
    first: ClientFirst
    answer: ServerFirst


class ScramServer:
    """Authenticates a client by two tokens; `nonce` is new for each authentication.

    As in Kafka, an unknown user fails with the first token, and costs no more than a known one: the
    keys of a password are stored, and nothing is hashed until the second.
    """

    def __init__(self, mechanism: ScramMechanism, find: FindLogin, nonce: str) -> None:
        self._hash = SCRAM_DIGESTS[mechanism]
        self._find = find
        self._nonce = nonce
        self._begun: _Begun | None = None
        self.user: AuthenticatedUser | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a token; raises SaslError, or SaslBrokenError for half a proof."""
        try:
            if self._begun is None:
                return self._begin(ClientFirst.decode(token))
            return self._end(self._begun, ClientFinal.decode(token))
        except ScramSyntaxError as error:
            raise SaslError(str(error)) from error

    def _begin(self, first: ClientFirst) -> bytes:
        login = self._find(first)
        if login is None:
            raise SaslError("Authentication failed: Invalid user credentials")
        # As in Kafka, the user is unescaped here, and the authorization id is not.
        if first.authorization_id not in {"", first.user}:
            raise SaslAuthenticationError(OTHER_AUTHORIZATION_ID)
        credential = login.credential
        if credential.iterations < SCRAM_ITERATIONS_MIN:
            raise SaslError(f"Iterations {credential.iterations} is less than the minimum")
        answer = ServerFirst(first.nonce + self._nonce, credential.salt, credential.iterations)
        self._begun = _Begun(login, first, answer)
        return answer.text.encode()

    def _end(self, begun: _Begun, final: ClientFinal) -> bytes:
        if final.nonce != begun.answer.nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        signed = ",".join((begun.first.signed, begun.answer.text, final.signed)).encode()
        credential = begun.login.credential
        signature = hmac_digest(credential.stored_key, signed, self._hash)
        if len(final.proof) != len(signature):
            raise SaslBrokenError("a proof of SCRAM of another length than the hash")
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        stored_key = new_hash(self._hash, client_key).digest()
        if not compare_digest(stored_key, credential.stored_key):
            raise SaslError("Invalid client credentials")
        self.user = begun.login.user
        server_signature = hmac_digest(credential.server_key, signed, self._hash)
        return b"v=" + b64encode(server_signature)
