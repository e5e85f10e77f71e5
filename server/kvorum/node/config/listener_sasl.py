"""The settings of SASL of a node's listeners for clients, and what of SASL is served."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.config_definitions import read_settings
from kvorum.node.config.errors import require
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.values import NodeValues, listener_prefix, mechanism_key
from kvorum.security.sasl_mechanisms import SERVED_MECHANISMS
from kvorum.security.sasl_settings import MechanismSettings, SaslSettings

JAAS_CONFIG: Final = "sasl.jaas.config"
_CALLBACK_HANDLER: Final = "sasl.server.callback.handler.class"
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


def _sasl_of(values: NodeValues, listener: str) -> SaslSettings:
    value_of = values.of_listener(listener)
    names = value_of("sasl.enabled.mechanisms")
    assert isinstance(names, tuple)
    mechanisms = {name: _mechanism_of(values, listener, name) for name in names}
    return read_settings(SaslSettings, value_of, mechanisms=MappingProxyType(mechanisms))


def _mechanism_of(values: NodeValues, listener: str, mechanism: str) -> MechanismSettings:
    # As in Kafka, only the listener's own key for the mechanism is a login module.
    key = listener_prefix(listener) + mechanism_key(mechanism, JAAS_CONFIG)
    value_of = values.of_mechanism(listener, mechanism)
    return read_settings(MechanismSettings, value_of, jaas_config=values.texts.get(key))


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
    for mechanism in settings.enabled_mechanisms:
        handler = prefix + mechanism_key(mechanism, _CALLBACK_HANDLER)
        require(not values.is_set(handler), f"{handler} is set, but kvorum has no such handlers")
