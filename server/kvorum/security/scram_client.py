"""SCRAM (RFC 5802, RFC 7677) on the client's side, with the checks of Kafka's ScramSaslClient."""

from collections.abc import Callable
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Final

from kvorum.metadata.credentials_image import SCRAM_DIGESTS, SCRAM_ITERATIONS_MIN, ScramMechanism
from kvorum.security.sasl_client import SaslServerError
from kvorum.security.scram_messages import (
    BY_TOKEN,
    NO_CHANNEL_BINDING,
    ClientFinal,
    ClientFirst,
    ScramSyntaxError,
    ServerFinal,
    ServerFirst,
    escaped_name,
)

ITERATIONS_MAX: Final = 1_000_000
"""Half a second of work. Kafka's client has no limit; its servers store 16,384 at most."""


class ScramClient:
    """Proves to a server that it knows a password, and has the server prove the same.

    `nonce` is new for each authentication. With `is_by_token` the user is a delegation token's id.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        nonce: str,
        *,
        is_by_token: bool = False,
    ) -> None:
        self._mechanism = mechanism
        self._hash = SCRAM_DIGESTS[mechanism]
        self._first = ClientFirst(
            "", escaped_name(user), nonce, {BY_TOKEN: "true"} if is_by_token else {}
        )
        self._password = password.encode()
        self._server_signature = b""
        self._next: Callable[[bytes], bytes] = self._begin
        self.is_complete = False

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a server's token; raises SaslServerError."""
        try:
            return self._next(token)
        except ScramSyntaxError as error:
            raise SaslServerError(str(error)) from error

    def _begin(self, token: bytes) -> bytes:
        if token:
            raise SaslServerError("Expected empty challenge")
        self._next = self._prove
        return NO_CHANNEL_BINDING + self._first.signed.encode()

    def _prove(self, token: bytes) -> bytes:
        server = ServerFirst.decode(token)
        self._check(server)
        salted = pbkdf2_hmac(self._hash, self._password, server.salt, server.iterations)
        client_key = hmac_digest(salted, b"Client Key", self._hash)
        stored_key = new_hash(self._hash, client_key).digest()
        final = ClientFinal(NO_CHANNEL_BINDING, server.nonce, b"")
        signed = ",".join((self._first.signed, server.text, final.signed)).encode()
        signature = hmac_digest(stored_key, signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac_digest(salted, b"Server Key", self._hash)
        self._server_signature = hmac_digest(server_key, signed, self._hash)
        self._next = self._verify
        return final._replace(proof=proof).text.encode()

    def _check(self, server: ServerFirst) -> None:
        """Raise SaslServerError for another exchange's nonce, and for a hash that is too cheap."""
        if not server.nonce.startswith(self._first.nonce):
            raise SaslServerError("Invalid server nonce: does not start with client nonce")
        if server.iterations < SCRAM_ITERATIONS_MIN:
            raise SaslServerError(
                f"Requested iterations {server.iterations} is less than the minimum "
                f"{SCRAM_ITERATIONS_MIN} for {self._mechanism.name}"
            )
        if server.iterations > ITERATIONS_MAX:
            raise SaslServerError(
                f"Requested iterations {server.iterations} is greater than {ITERATIONS_MAX}"
            )

    def _verify(self, token: bytes) -> bytes:
        final = ServerFinal.decode(token)
        if final.error is not None:
            raise SaslServerError(
                f"Sasl authentication using {self._mechanism.name} failed with error: {final.error}"
            )
        if not compare_digest(final.signature, self._server_signature):
            raise SaslServerError("Invalid server signature in server final message")
        self.is_complete = True
        return b""
