"""The settings of TLS of a node's listeners, each with its own keys before those of the node."""

from collections.abc import Mapping
from types import MappingProxyType

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigValue,
    parse_value,
    read_settings,
)
from kvorum.node.config.errors import config_errors
from kvorum.node.config.listeners import Listeners, SecurityProtocol
from kvorum.node.config.values import NodeValues
from kvorum.security.ssl_settings import SslSettings


def ssl_of_listeners(values: NodeValues, listeners: Listeners) -> Mapping[str, SslSettings]:
    """Return the settings of each listener that uses SSL, by name; raises ConfigError.

    Those of the controllers are needed also by a broker that has no such listener.
    """
    names = {listener.name for listener in listeners.bound}
    names.add(listeners.controller_names[0].upper())
    protocols = listeners.protocols
    return MappingProxyType(
        {
            name: _ssl_of(values, name)
            for name in sorted(names)
            if protocols.get(name) is SecurityProtocol.SSL
        }
    )


def _ssl_of(values: NodeValues, listener: str) -> SslSettings:
    prefix = f"listener.name.{listener.lower()}."

    def value_of(key: str) -> ConfigValue:
        own = values.texts.get(prefix + key)
        return values.value_of(key) if own is None else parse_value(BROKER_CONFIGS[key], own)

    with config_errors():
        return read_settings(SslSettings, value_of)
