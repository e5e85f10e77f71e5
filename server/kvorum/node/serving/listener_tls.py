"""The means of a listener to speak TLS, made once, before the node opens anything."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvorum.metadata.standard_authorizer import ANONYMOUS, USER_TYPE, Principal
from kvorum.node.config import NodeConfig
from kvorum.node.errors import CloseConnectionError, NodeStartError
from kvorum.security.distinguished_name import DerError, subject_of_certificate
from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.ssl_principal_mapper import (
    InvalidMappingRuleError,
    NoMappedNameError,
    SslPrincipalMapper,
)
from kvorum.security.ssl_settings import SslSettings


class ListenerTls(NamedTuple):
    """The context of a listener's connections, and the rules that name their users.

    Without a context every connection is closed as it comes.
    """

    context: ssl.SSLContext | None
    mapper: SslPrincipalMapper

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Return the user with a certificate in DER; raises CloseConnectionError without a name."""
        if certificate is None:
            return ANONYMOUS
        try:
            return Principal(USER_TYPE, self.mapper.name_of(subject_of_certificate(certificate)))
        except (DerError, NoMappedNameError) as error:
            raise CloseConnectionError(str(error)) from error


def tls_of_listeners(config: NodeConfig) -> Mapping[str, ListenerTls]:
    """Return what each listener with TLS needs, by name; raises NodeStartError."""
    return MappingProxyType({name: _tls(name, each) for name, each in config.ssl.items()})


def _tls(listener: str, settings: SslSettings) -> ListenerTls:
    try:
        # Imported here: only nodes with TLS need the library that it reads stores with.
        from kvorum.security.tls_contexts import server_context  # noqa: PLC0415 - see above
    except ImportError as error:
        raise NodeStartError(
            f"Listener {listener} uses SSL, for which kvorum needs the package cryptography: "
            "install kvorum with its extra 'security'"
        ) from error
    try:
        return ListenerTls(
            server_context(settings), SslPrincipalMapper(settings.principal_mapping_rules)
        )
    except (InvalidSslSettingsError, InvalidMappingRuleError) as error:
        raise NodeStartError(f"Listener {listener} cannot use SSL: {error}") from error
