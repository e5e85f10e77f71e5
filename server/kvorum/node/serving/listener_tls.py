"""The means of a listener to speak TLS, made once, before the node opens anything."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.standard_authorizer import ANONYMOUS, USER_TYPE, Principal
from kvorum.node.config import NodeConfig
from kvorum.node.errors import CloseConnectionError
from kvorum.node.serving.listener_start_errors import listener_start_errors
from kvorum.node.serving.used_tls import UsedTls
from kvorum.security.distinguished_name import DerError, subject_of_certificate
from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.own_connection import check_own_connection
from kvorum.security.ssl_principal_mapper import (
    InvalidMappingRuleError,
    NoMappedNameError,
    SslPrincipalMapper,
)
from kvorum.security.ssl_settings import SslSettings

_INVALID: Final = (InvalidSslSettingsError, InvalidMappingRuleError)


class ListenerTls:
    """The context of a listener's new connections, and the rules that name their users.

    Without a context every connection is closed as it comes.
    """

    def __init__(self, used: UsedTls[ssl.SSLContext | None]) -> None:
        """Begin with a context; raises InvalidMappingRuleError."""
        self.used = used
        self._mapper = SslPrincipalMapper(used.settings.principal_mapping_rules)

    @property
    def context(self) -> ssl.SSLContext | None:
        """The context of new connections."""
        return self.used.context

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Return the user with a certificate in DER; raises CloseConnectionError without a name."""
        if certificate is None:
            return ANONYMOUS
        try:
            return Principal(USER_TYPE, self._mapper.name_of(subject_of_certificate(certificate)))
        except (DerError, NoMappedNameError) as error:
            raise CloseConnectionError(str(error)) from error


class NodeTls(NamedTuple):
    """The TLS of a node: of its listeners by name, and of its connections to other nodes.

    It is None for connections in plain text.
    """

    listeners: Mapping[str, ListenerTls]
    to_brokers: UsedTls[ssl.SSLContext] | None
    to_controllers: UsedTls[ssl.SSLContext] | None


def tls_of_node(config: NodeConfig) -> NodeTls:
    """Return what the listeners and connections of a node need; raises NodeStartError."""
    listeners = config.listeners
    served = {
        each.name: _tls(each.name, config.ssl[each.name])
        for each in listeners.bound
        if each.name in config.ssl
    }
    to_brokers = _connecting(config, listeners.inter_broker_name) if config.is_broker else None
    if to_brokers is not None:
        own = listeners.inter_broker_name
        with _start_errors(own):
            check_own_connection(served[own].context, to_brokers.context)
    to_controllers = _connecting(config, listeners.controller_names[0].upper())
    return NodeTls(MappingProxyType(served), to_brokers, to_controllers)


def _connecting(config: NodeConfig, listener: str) -> UsedTls[ssl.SSLContext] | None:
    """Return the TLS of connections to a listener of other nodes."""
    settings = config.ssl.get(listener)
    if settings is None:
        return None
    with _start_errors(listener):
        # Imported here: only nodes with TLS need the library that it reads stores with.
        from kvorum.security.loaded_stores import LoadedStores  # noqa: PLC0415 - see above
        from kvorum.security.tls_contexts import client_context_of  # noqa: PLC0415 - see above

        return UsedTls(LoadedStores.of(settings), client_context_of)


def _tls(listener: str, settings: SslSettings) -> ListenerTls:
    with _start_errors(listener):
        from kvorum.security.loaded_stores import LoadedStores  # noqa: PLC0415 - as in `_connecting`
        from kvorum.security.tls_contexts import server_context  # noqa: PLC0415 - as above

        return ListenerTls(UsedTls(LoadedStores.of(settings), server_context))


def _start_errors(listener: str) -> AbstractContextManager[None]:
    return listener_start_errors(listener, uses="SSL", needs="cryptography", invalid=_INVALID)
