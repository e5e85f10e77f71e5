"""The settings of TLS of a node's listeners, each with its own keys before those of the node."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from kvorum.metadata.config_definitions import read_settings
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.values import NodeValues, listener_prefix
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.security.ssl_settings import SslSettings

_CLIENT_AUTH: Final = "ssl.client.auth"
_NO_CLIENT_AUTH: Final = "none"


def ssl_of_listeners(values: NodeValues, listeners: Listeners) -> Mapping[str, SslSettings]:
    """Return the settings of each listener that uses TLS, by name; raises ConfigError.

    Those of the controllers are needed also by a broker that has no such listener.
    """
    names = {listener.name for listener in listeners.bound}
    names.add(listeners.controller_names[0].upper())
    protocols = listeners.protocols
    return MappingProxyType(
        {
            name: _ssl_of(values, name, protocols[name])
            for name in sorted(names)
            if name in protocols and protocols[name].uses_ssl
        }
    )


def _ssl_of(values: NodeValues, listener: str, protocol: SecurityProtocol) -> SslSettings:
    settings = read_settings(SslSettings, values.of_listener(listener))
    if protocol.uses_sasl and not values.is_set(f"{listener_prefix(listener)}{_CLIENT_AUTH}"):
        # A certificate besides SASL has to be asked for by the listener itself (KIP-684).
        return replace(settings, client_auth=_NO_CLIENT_AUTH)
    return settings
