"""The security of a client's connections, made out of its settings."""

import ssl
from typing import Final, NamedTuple

from kvorum.security.sasl_login import SaslLogin


class ClientSecurity(NamedTuple):
    """The TLS and the login of connections; each is None for connections without."""

    tls: ssl.SSLContext | None = None
    login: SaslLogin | None = None


NO_SECURITY: Final = ClientSecurity()
