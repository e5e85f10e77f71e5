"""The settings of SASL: of a node's listeners, of its logins at others; what of it is served."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final

from kvorum.metadata.config_definitions import ConfigValue, read_settings
from kvorum.node.config.errors import require
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.values import NodeValues, listener_prefix, mechanism_key
from kvorum.security.oauth_login_settings import LOGIN_HANDLER, OAuthLoginSettings
from kvorum.security.sasl_login_modules import OAUTHBEARER, SCRAM, SERVED_MECHANISMS
from kvorum.security.sasl_settings import (
    VERIFYING_HANDLER,
    MechanismSettings,
    SaslLoginSettings,
    SaslSettings,
)
from kvorum.security.security_protocol import SecurityProtocol

JAAS_CONFIG: Final = "sasl.jaas.config"
CALLBACK_HANDLER: Final = "sasl.server.callback.handler.class"
_CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
_INTER_BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_OAUTH_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_HANDLERS: Final = (
    VERIFYING_HANDLER,
    f"{_OAUTH_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
)
_JWT_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_JWT_VALIDATORS: Final = tuple(
    f"{_OAUTH_PACKAGE}.{name}" for name in ("DefaultJwtValidator", "BrokerJwtValidator")
)
_VOTERS_THAT_LOG_IN: Final = 2
"""The least number of voters that log in at each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismsBetweenNodes:
    """The mechanisms by which a node logs in at others."""

    controllers: Annotated[str, _CONTROLLER_MECHANISM]
    brokers: Annotated[str, _INTER_BROKER_MECHANISM]


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
    handler = listener_prefix(listener) + mechanism_key(mechanism, CALLBACK_HANDLER)
    return read_settings(
        MechanismSettings,
        value_of,
        jaas_config=values.texts.get(key),
        callback_handler=values.texts.get(handler),
    )


def logins_between_nodes(
    values: NodeValues, listeners: Listeners
) -> Mapping[str, SaslLoginSettings]:
    """Return how a node logs in at others, by the listener of theirs that it connects to."""
    mechanisms = read_settings(MechanismsBetweenNodes, values.value_of)
    # A broker has no socket for the controllers' listeners, but connects to the first one.
    controllers = listeners.controller_names[0].upper()
    protocol = listeners.protocols.get(controllers, SecurityProtocol.PLAINTEXT)
    found: dict[str, str] = {}
    if protocol.uses_sasl:
        found[controllers] = mechanisms.controllers
    if "broker" in values.words("process.roles") and listeners.inter_broker_protocol.uses_sasl:
        found[listeners.inter_broker_name] = mechanisms.brokers
    return MappingProxyType(
        {name: _login_at(values, name, mechanism) for name, mechanism in found.items()}
    )


def _login_at(values: NodeValues, listener: str, mechanism: str) -> SaslLoginSettings:
    def own(key: str) -> str | None:
        # As in Kafka, only the listener's own key for the mechanism counts.
        return values.texts.get(listener_prefix(listener) + mechanism_key(mechanism, key))

    oauth = read_settings(
        OAuthLoginSettings, values.of_mechanism(listener, mechanism), handler=own(LOGIN_HANDLER)
    )
    return SaslLoginSettings(mechanism, own(JAAS_CONFIG), oauth)


def check_sasl_can_be_served(values: NodeValues, sasl: Mapping[str, SaslSettings]) -> None:
    """Refuse listeners with something of SASL that only Kafka has: raises ConfigError."""
    for name, settings in sasl.items():
        _check_listener(values, name, settings)


def check_can_log_in(
    values: NodeValues, listeners: Listeners, logins: Mapping[str, SaslLoginSettings]
) -> None:
    """Refuse mechanisms that only Kafka has, and SCRAM between voters: raises ConfigError."""
    for name, settings in logins.items():
        is_controllers = name == listeners.controller_names[0].upper()
        key = _CONTROLLER_MECHANISM if is_controllers else _INTER_BROKER_MECHANISM
        require(
            settings.mechanism in SERVED_MECHANISMS,
            f"{key} is {settings.mechanism}, but kvorum's nodes log in by "
            f"{', '.join(SERVED_MECHANISMS)} only",
        )
        require(
            not is_controllers
            or settings.mechanism not in SCRAM
            or len(values.words("controller.quorum.voters")) < _VOTERS_THAT_LOG_IN,
            f"{key} is {settings.mechanism}, but the voters of controller.quorum.voters know "
            "the users of SCRAM only once they have a leader, which they cannot elect before they "
            "log in: use PLAIN, or SSL with certificates",
        )


def _check_listener(values: NodeValues, name: str, settings: SaslSettings) -> None:
    prefix = listener_prefix(name)
    unserved = [each for each in settings.enabled_mechanisms if each not in SERVED_MECHANISMS]
    require(
        not unserved,
        f"Listener {name} has {', '.join(unserved)} in sasl.enabled.mechanisms, but kvorum serves "
        f"{', '.join(SERVED_MECHANISMS)} only: set {prefix}sasl.enabled.mechanisms",
    )
    for mechanism in settings.enabled_mechanisms:
        _check_callback_handler(prefix, mechanism, settings.mechanisms[mechanism].callback_handler)
        if mechanism == OAUTHBEARER:
            _check_jwt_validator(values.of_mechanism(name, mechanism)(_JWT_VALIDATOR))


def _check_callback_handler(prefix: str, mechanism: str, handler: str | None) -> None:
    served = _HANDLERS if mechanism == OAUTHBEARER else ()
    known = f"kvorum has {', '.join(served)} only" if served else "kvorum has no such handlers"
    require(
        handler is None or handler in served,
        f"{prefix}{mechanism_key(mechanism, CALLBACK_HANDLER)} is {handler}, but {known}",
    )


def _check_jwt_validator(validator: ConfigValue) -> None:
    require(
        validator in _JWT_VALIDATORS,
        f"{_JWT_VALIDATOR} is {validator}, but kvorum makes the checks of Kafka's own alone: set "
        f"it to {_JWT_VALIDATORS[0]}",
    )
