"""The kinds of security that the clients of an embedded cluster can have."""

from enum import StrEnum


class SecurityMode(StrEnum):
    """The security of the listener for clients, by the word that asks for it.

    `MTLS` asks clients for a certificate. Within TLS, `SCRAM` asks for a user's password, and
    `OAUTH` for a token of an issuer.
    """

    TLS = "tls"
    MTLS = "mtls"
    SCRAM = "scram"
    OAUTH = "oauth"


def security_mode(word: str) -> SecurityMode:
    """Return the mode that a word asks for; raises ValueError for another word."""
    try:
        return SecurityMode(word)
    except ValueError:
        known = ", ".join(mode.value for mode in SecurityMode)
        raise ValueError(f"there is no security {word!r}: {known}") from None
