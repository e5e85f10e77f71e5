"""The security of a stream's connections: TLS, and SASL with a name and a password.

What is secret is in no text that Python makes of these values.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final

from kvorum.spark.errors import QuorumError


@dataclass(frozen=True, slots=True)
class Tls:
    """Which certificates are trusted, and which one is shown; paths are of PEM files.

    Without `trusted_file` and `trusted_text` the certificates of the system are trusted. `own_file`
    has the private key and its certificates.
    """

    trusted_file: str | None = None
    trusted_text: str | None = None
    own_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_host: bool = True

    def context(self) -> ssl.SSLContext:
        """Return what Python's TLS needs; raises `QuorumError` for a file that is of no use."""
        try:
            context = ssl.create_default_context(cafile=self.trusted_file, cadata=self.trusted_text)
        except (OSError, ValueError) as error:
            name = "certificates" if self.trusted_file is None else "location"
            raise _unusable(f"kafka.ssl.truststore.{name}", self.trusted_file, error) from None
        context.check_hostname = self.checks_host
        if self.own_file is not None:
            try:
                # Without a password Python would ask for one at the terminal.
                context.load_cert_chain(self.own_file, password=self.key_password or "")
            except (OSError, ValueError) as error:
                raise _unusable("kafka.ssl.keystore.location", self.own_file, error) from None
        return context


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and a password, and the mechanism of SASL that takes them."""

    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """The security protocol of a quorum's listener; neither TLS nor SASL is PLAINTEXT."""

    tls: Tls | None = None
    credentials: Credentials | None = None

    @property
    def protocol(self) -> str:
        """The name of the protocol, as Kafka has it."""
        if self.credentials is None:
            return "PLAINTEXT" if self.tls is None else "SSL"
        return "SASL_PLAINTEXT" if self.tls is None else "SASL_SSL"


PLAINTEXT: Final = Security()


def _unusable(option: str, path: str | None, error: Exception) -> QuorumError:
    where = "" if path is None else f"{path}: "
    reason = getattr(error, "strerror", None) or str(error)
    return QuorumError(f"option {option!r}: {where}{reason}")
