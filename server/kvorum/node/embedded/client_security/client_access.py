"""The settings by which a client reaches a secured cluster, in the words of its library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PEM: Final = "PEM"
PLAINTEXT: Final = "PLAINTEXT"
LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "java"
PYTHON: Final = "python"
FORMS: Final = (LIBRDKAFKA, JAVA, PYTHON)
OAUTH_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
OAUTH_LOGIN_MODULE: Final = f"{OAUTH_PACKAGE}.OAuthBearerLoginModule"
OAUTH_LOGIN_HANDLER: Final = f"{OAUTH_PACKAGE}.OAuthBearerLoginCallbackHandler"
SCRAM_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class User:
    """A user's name and password."""

    name: str
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAccess:
    """The protocol, the authority that clients trust, and what they show of themselves.

    `certificate` is a file with a key and its certificate; `mechanism` is one of SASL, for `user`.
    With a `token_url` the user gets a token there.
    """

    protocol: str = PLAINTEXT
    authority: Path | None = None
    certificate: Path | None = None
    mechanism: str | None = None
    user: User | None = None
    token_url: str | None = None

    def librdkafka(self, bootstrap_servers: str) -> dict[str, str]:
        """Return the configuration of librdkafka, and of the clients that are made of it."""
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": self.protocol,
        }
        if self.authority is not None:
            settings["ssl.ca.location"] = str(self.authority)
        if self.certificate is not None:
            settings["ssl.certificate.location"] = str(self.certificate)
            settings["ssl.key.location"] = str(self.certificate)
        if self.mechanism is not None:
            settings["sasl.mechanism"] = self.mechanism
        if self.user is not None and self.token_url is not None:
            settings["sasl.oauthbearer.method"] = "oidc"
            settings["sasl.oauthbearer.token.endpoint.url"] = self.token_url
            settings["sasl.oauthbearer.client.id"] = self.user.name
            settings["sasl.oauthbearer.client.secret"] = self.user.password
        elif self.user is not None:
            settings["sasl.username"] = self.user.name
            settings["sasl.password"] = self.user.password
        return settings

    def java(self, bootstrap_servers: str) -> dict[str, str]:
        """Return the properties of Java's clients, and of Kafka's tools (--command-config).

        Java gets tokens only from URLs in the property of the JVM
        ``org.apache.kafka.sasl.oauthbearer.allowed.urls``.
        """
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": self.protocol,
        }
        if self.authority is not None:
            settings["ssl.truststore.type"] = PEM
            settings["ssl.truststore.location"] = str(self.authority)
        if self.certificate is not None:
            settings["ssl.keystore.type"] = PEM
            settings["ssl.keystore.location"] = str(self.certificate)
        if self.mechanism is not None:
            settings["sasl.mechanism"] = self.mechanism
        if self.user is not None and self.token_url is not None:
            settings["sasl.oauthbearer.token.endpoint.url"] = self.token_url
            settings["sasl.login.callback.handler.class"] = OAUTH_LOGIN_HANDLER
            settings["sasl.jaas.config"] = (
                f"{OAUTH_LOGIN_MODULE} required "
                f'clientId="{self.user.name}" clientSecret="{self.user.password}";'
            )
        elif self.user is not None:
            settings["sasl.jaas.config"] = (
                f"{SCRAM_LOGIN_MODULE} required "
                f'username="{self.user.name}" password="{self.user.password}";'
            )
        return settings

    def python(self, bootstrap_servers: str) -> dict[str, str]:
        """Return the arguments of kafka-python's clients.

        It gets no tokens by itself: a token provider of the user's own has to.
        """
        settings = {
            "bootstrap_servers": bootstrap_servers,
            "security_protocol": self.protocol,
        }
        if self.authority is not None:
            settings["ssl_cafile"] = str(self.authority)
        if self.certificate is not None:
            settings["ssl_certfile"] = str(self.certificate)
        if self.mechanism is not None:
            settings["sasl_mechanism"] = self.mechanism
        if self.user is not None and self.token_url is None:
            settings["sasl_plain_username"] = self.user.name
            settings["sasl_plain_password"] = self.user.password
        return settings

    def settings(self, form: str, bootstrap_servers: str) -> dict[str, str]:
        """Return the settings in one of `FORMS`; raises ValueError for another one."""
        forms = {LIBRDKAFKA: self.librdkafka, JAVA: self.java, PYTHON: self.python}
        if form not in forms:
            raise ValueError(f"there are no client settings for {form!r}: {', '.join(FORMS)}")
        return forms[form](bootstrap_servers)
