"""The security of a client as Kafka's keys have it, and what is made of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigDefinition,
    ConfigType,
    ConfigValue,
    keys_of,
    parse_all,
    read_settings,
)
from kvorum.metadata.config_definitions.validators import OneOfIgnoringCase
from kvorum.security.allowed_url import ALLOWED_URLS
from kvorum.security.client_login import ClientLogin, client_login
from kvorum.security.client_security import ClientSecurity
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.oauth_login_settings import OAuthLoginSettings
from kvorum.security.sasl_login_modules import SERVED_MECHANISMS
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.security.ssl_settings import SslSettings

PROTOCOL: Final = "security.protocol"
MECHANISM: Final = "sasl.mechanism"
JAAS_CONFIG: Final = "sasl.jaas.config"
SSL_KEYS: Final = keys_of(SslSettings)
SASL_KEYS: Final = keys_of(OAuthLoginSettings) | {MECHANISM, JAAS_CONFIG}
CLIENT_CONFIGS: Final[Mapping[str, ConfigDefinition]] = MappingProxyType(
    {
        PROTOCOL: ConfigDefinition(
            PROTOCOL,
            ConfigType.STRING,
            "PLAINTEXT",
            OneOfIgnoringCase(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")),
        ),
        MECHANISM: ConfigDefinition(MECHANISM, ConfigType.STRING, "GSSAPI"),
        JAAS_CONFIG: ConfigDefinition(JAAS_CONFIG, ConfigType.PASSWORD, None),
        ALLOWED_URLS: ConfigDefinition(ALLOWED_URLS, ConfigType.STRING, ""),
        **{
            name: BROKER_CONFIGS[name]
            for name in sorted(SSL_KEYS | keys_of(OAuthLoginSettings))
            if name in BROKER_CONFIGS
        },
    }
)


class UnservedMechanismError(ValueError):
    """A mechanism of SASL that only Kafka's clients have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecuritySettings:
    """The protocol of a client's connections, with the settings that it needs.

    Nothing that is secret is in the text of these objects, which can be pickled.
    """

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    ssl: SslSettings | None = None
    login: ClientLogin | None = None

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Self:
        """Read the texts of a client's keys, of which others do not count.

        Raises InvalidConfigError, and what `from_values` raises.
        """
        return cls.from_values(parse_all(CLIENT_CONFIGS, texts))

    @classmethod
    def from_values(cls, values: Mapping[str, ConfigValue]) -> Self:
        """Read the values of `CLIENT_CONFIGS`.

        Raises UnservedMechanismError, InvalidJaasConfigError, InvalidOAuthSettingsError, and
        InvalidSslSettingsError for the stores of a place that gives tokens.
        """
        protocol = SecurityProtocol[str(values[PROTOCOL]).upper()]
        return cls(
            protocol=protocol,
            ssl=read_settings(SslSettings, values.__getitem__) if protocol.uses_ssl else None,
            login=_login(values) if protocol.uses_sasl else None,
        )

    def make(self) -> ClientSecurity:
        """Return what connections take.

        Its login is not yet prepared. Raises InvalidSslSettingsError, and ImportError where TLS
        lacks the extra `security`.
        """
        if self.ssl is None:
            return ClientSecurity(None, self.login)
        # Imported here: only clients with TLS need the library that it reads stores with.
        from kvorum.security.tls_contexts import client_context  # noqa: PLC0415 - see above

        return ClientSecurity(client_context(self.ssl), self.login)


def _login(values: Mapping[str, ConfigValue]) -> ClientLogin:
    mechanism = str(values[MECHANISM])
    text = values[JAAS_CONFIG]
    if text is None:
        raise InvalidJaasConfigError(
            "Could not find a 'KafkaClient' entry in the JAAS configuration. System property "
            "'java.security.auth.login.config' is not set"
        )
    if mechanism not in SERVED_MECHANISMS:
        raise UnservedMechanismError(
            f"{MECHANISM} is {mechanism}, but kvorum's clients log in by "
            f"{', '.join(SERVED_MECHANISMS)} only"
        )
    settings = read_settings(OAuthLoginSettings, values.__getitem__)
    return client_login(mechanism, str(text), settings)
