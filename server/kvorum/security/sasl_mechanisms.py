"""The mechanisms of SASL that are served, each made out of its login module."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.security.jaas_config import InvalidJaasConfigError, LoginModule, parse_jaas_config
from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_server import NewSaslServer
from kvorum.security.sasl_settings import SaslSettings

PLAIN: Final = "PLAIN"
SERVED_MECHANISMS: Final = (PLAIN,)
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_MODULES: Final = frozenset({_PLAIN_MODULE})
_USER_OPTION: Final = "user_"


def mechanisms_of(listener: str, settings: SaslSettings) -> Mapping[str, NewSaslServer]:
    """Return the mechanisms of a listener in the order of its settings.

    Raises InvalidJaasConfigError for one whose login module is missing or wrong.
    """
    return MappingProxyType(
        {
            mechanism: _plain(_module_of(listener, mechanism, settings))
            for mechanism in settings.enabled_mechanisms
        }
    )


def _module_of(listener: str, mechanism: str, settings: SaslSettings) -> LoginModule:
    text = settings.jaas_configs.get(mechanism)
    if text is None:
        name = listener.lower()
        raise InvalidJaasConfigError(
            f"Could not find a 'KafkaServer' or '{name}.KafkaServer' entry in the JAAS "
            "configuration. System property 'java.security.auth.login.config' is not set: set "
            f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"
        )
    module = parse_jaas_config(text)
    if module.class_name not in _MODULES:
        raise InvalidJaasConfigError(
            "javax.security.auth.login.LoginException: No LoginModule found for "
            f"{module.class_name}"
        )
    return module


def _plain(module: LoginModule) -> NewSaslServer:
    passwords = {
        name.removeprefix(_USER_OPTION): password
        for name, password in module.options.items()
        if name.startswith(_USER_OPTION)
    }
    return lambda: PlainServer(passwords)
