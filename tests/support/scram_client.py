"""SCRAM on a client's side, message by message."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import digest

NAMES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NONCE = "of-the-client"


@dataclass(frozen=True)
class ScramClient:
    """A client with a name and a password; `more` are extensions, each with a comma before it."""

    mechanism: str
    user: str
    password: str
    more: str = ""
    authorization_id: str = ""

    @property
    def first(self) -> bytes:
        own = f"a={self.authorization_id}" if self.authorization_id else ""
        return f"n,{own},{self._bare}".encode()

    @property
    def _bare(self) -> str:
        return f"n={self.user},r={NONCE}{self.more}"

    def final(self, answer: bytes) -> bytes:
        """Return the message with the proof, upon the server's answer to the first one."""
        name = NAMES[self.mechanism]
        parts = dict(part.split("=", 1) for part in answer.decode().split(","))
        salt = b64decode(parts["s"])
        salted = pbkdf2_hmac(name, self.password.encode(), salt, int(parts["i"]))
        client_key = digest(salted, b"Client Key", name)
        own = f"c=biws,r={parts['r']}"
        signed = f"{self._bare},{answer.decode()},{own}".encode()
        signature = digest(new_hash(name, client_key).digest(), signed, name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{own},p={b64encode(proof).decode()}".encode()
