"""The security of a client's connections, made out of its settings."""

import ssl
from typing import Final, NamedTuple

from kvorum.security.client_login import ClientLogin
from kvorum.security.security_protocol import SecurityProtocol


class ClientSecurity(NamedTuple):
    """The TLS and the login of connections; each is None for connections without."""

    tls: ssl.SSLContext | None = None
    login: ClientLogin | None = None

    @property
    def protocol(self) -> SecurityProtocol:
        """The protocol that a listener has to have."""
        if self.login is None:
            return SecurityProtocol.PLAINTEXT if self.tls is None else SecurityProtocol.SSL
        return SecurityProtocol.SASL_PLAINTEXT if self.tls is None else SecurityProtocol.SASL_SSL


NO_SECURITY: Final = ClientSecurity()
