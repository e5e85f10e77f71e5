"""The mechanisms of SASL that are served, and the login modules that they are configured with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.credentials_image import SCRAM_DIGESTS, ScramMechanism
from kvorum.security.jaas_config import InvalidJaasConfigError, LoginModule, parse_jaas_config

PLAIN: Final = "PLAIN"
SCRAM: Final[Mapping[str, ScramMechanism]] = MappingProxyType(
    {mechanism.mechanism_name: mechanism for mechanism in SCRAM_DIGESTS}
)
OAUTHBEARER: Final = "OAUTHBEARER"
SERVED_MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_MODULES: Final = frozenset({PLAIN_MODULE, SCRAM_MODULE, OAUTH_MODULE})


class NoLoginModuleError(InvalidJaasConfigError):
    """A login module that is not one of these, with the exception's class in Kafka's text."""


def read_login_module(text: str) -> LoginModule:
    """Return the login module of a text; raises InvalidJaasConfigError."""
    module = parse_jaas_config(text)
    if module.class_name not in _MODULES:
        raise NoLoginModuleError(
            "javax.security.auth.login.LoginException: No LoginModule found for "
            f"{module.class_name}"
        )
    return module
