"""The options of a stream about the security of its connections: the keys of Kafka's clients.

They have ``kafka.`` before them. Stores are PEM unless a type is given, unlike those of Kafka.
"""

from collections.abc import Mapping
from typing import Final

from kvorum.metadata.config_definitions import InvalidConfigError
from kvorum.quorum_client.errors import ClientOptionError
from kvorum.security.client_settings import (
    CLIENT_CONFIGS,
    JAAS_CONFIG,
    PROTOCOL,
    SASL_KEYS,
    SSL_KEYS,
    ClientSecuritySettings,
    UnservedMechanismError,
)
from kvorum.security.errors import InvalidOAuthSettingsError, InvalidSslSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.ssl_settings import PEM

PREFIX: Final = "kafka."
SECURITY_OPTIONS: Final = tuple(f"{PREFIX}{name}" for name in CLIENT_CONFIGS)
_STORE_TYPES: Final = {"ssl.keystore.type": PEM, "ssl.truststore.type": PEM}

_INVALID: Final = (
    InvalidConfigError,
    InvalidOAuthSettingsError,
    InvalidSslSettingsError,
    UnservedMechanismError,
)


def security_options(options: Mapping[str, str]) -> ClientSecuritySettings:
    """Return how connections are secured.

    Raises `ClientOptionError`, which has no value of an option that may be secret.
    """
    texts = {
        name.lower().removeprefix(PREFIX): value
        for name, value in options.items()
        if name.lower() in SECURITY_OPTIONS
    }
    try:
        settings = ClientSecuritySettings.from_texts({**_STORE_TYPES, **texts})
    except InvalidJaasConfigError as error:
        raise ClientOptionError(f"option {PREFIX + JAAS_CONFIG!r}: {error}") from error
    except _INVALID as error:
        raise ClientOptionError(f"options {PREFIX + '*'!r}: {error}") from error
    _check_use(texts, settings)
    return settings


def _check_use(texts: Mapping[str, str], settings: ClientSecuritySettings) -> None:
    """Raise ClientOptionError for an option that the protocol does not use."""
    protocol = settings.protocol
    used = {
        PROTOCOL,
        *(SASL_KEYS if protocol.uses_sasl else ()),
        *(SSL_KEYS if protocol.uses_ssl else ()),
    }
    for name in texts:
        if name not in used:
            raise ClientOptionError(
                f"option {PREFIX + name!r} does not go with {PREFIX + PROTOCOL!r} {protocol.value}"
            )
