"""The settings of SASL of a node's listeners for clients, and what of SASL is served."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigValue,
    parse_value,
    read_settings,
)
from kvorum.node.config.errors import config_errors, require
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.values import NodeValues, listener_prefix
from kvorum.security.sasl_mechanisms import SERVED_MECHANISMS
from kvorum.security.sasl_settings import SaslSettings

JAAS_CONFIG: Final = "sasl.jaas.config"
_CALLBACK_HANDLER: Final = "sasl.server.callback.handler.class"
_REAUTHENTICATION: Final = "connections.max.reauth.ms"
_MAP: Final = "listener.security.protocol.map"


def sasl_of_listeners(values: NodeValues, listeners: Listeners) -> Mapping[str, SaslSettings]:
    """Return the settings of each bound listener that uses SASL, by name; raises ConfigError."""
    return MappingProxyType(
        {
            listener.name: _sasl_of(values, listener.name)
            for listener in listeners.bound
            if listener.protocol.uses_sasl
        }
    )


def mechanism_key(mechanism: str, key: str) -> str:
    """Return a key of one mechanism, without the prefix of its listener."""
    return f"{mechanism.lower()}.{key}"


def _sasl_of(values: NodeValues, listener: str) -> SaslSettings:
    prefix = listener_prefix(listener)
    value_of = values.of_listener(listener)
    mechanisms = value_of("sasl.enabled.mechanisms")
    assert isinstance(mechanisms, tuple)
    keys = {each: prefix + mechanism_key(each, JAAS_CONFIG) for each in mechanisms}
    jaas_configs = {each: values.texts[key] for each, key in keys.items() if key in values.texts}
    return read_settings(SaslSettings, value_of, jaas_configs=MappingProxyType(jaas_configs))


def check_sasl_can_be_served(
    values: NodeValues, listeners: Listeners, sasl: Mapping[str, SaslSettings]
) -> None:
    """Refuse uses of SASL that only Kafka has: raises ConfigError."""
    to_nodes = {*listeners.controller_names, listeners.inter_broker_name}
    for listener in listeners.bound:
        require(
            listener.name not in sasl or listener.name not in to_nodes,
            f"Listener {listener} uses {listener.protocol.value}, but kvorum's nodes connect to "
            f"each other by PLAINTEXT and SSL only: map {listener.name} to one of them in {_MAP}",
        )
    for name, settings in sasl.items():
        _check_listener(values, name, settings)


def _check_listener(values: NodeValues, name: str, settings: SaslSettings) -> None:
    prefix = listener_prefix(name)
    unserved = [each for each in settings.enabled_mechanisms if each not in SERVED_MECHANISMS]
    require(
        not unserved,
        f"Listener {name} has {', '.join(unserved)} in sasl.enabled.mechanisms, but kvorum serves "
        f"{', '.join(SERVED_MECHANISMS)} only: set {prefix}sasl.enabled.mechanisms",
    )
    _check_reauthentication(name, values.of_listener(name)(_REAUTHENTICATION))
    for mechanism in settings.enabled_mechanisms:
        handler = prefix + mechanism_key(mechanism, _CALLBACK_HANDLER)
        require(not values.is_set(handler), f"{handler} is set, but kvorum has no such handlers")
        own = values.texts.get(prefix + mechanism_key(mechanism, _REAUTHENTICATION))
        if own is not None:
            with config_errors():
                _check_reauthentication(name, parse_value(BROKER_CONFIGS[_REAUTHENTICATION], own))


def _check_reauthentication(listener: str, most_ms: ConfigValue) -> None:
    assert isinstance(most_ms, int)
    require(
        most_ms <= 0,
        f"{_REAUTHENTICATION} of listener {listener} is greater than 0, but kvorum's connections "
        "are authenticated only once: set it to 0",
    )
