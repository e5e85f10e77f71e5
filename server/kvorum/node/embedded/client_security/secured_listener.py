"""The security of a cluster's clients: certificates, users, and the properties of brokers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvorum.node.embedded.client_security.authority import CERTIFICATE_FILE, Authority, authority_of
from kvorum.node.embedded.client_security.client_access import (
    OAUTH_LOGIN_MODULE,
    OAUTH_PACKAGE,
    PEM,
    SCRAM_LOGIN_MODULE,
    ClientAccess,
    User,
)
from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.embedded.client_security.secret_files import SECURITY_FOLDER, write_secret
from kvorum.security.allowed_url import ALLOWED_URLS

if TYPE_CHECKING:
    from kvorum.node.embedded.client_security.token_issuer import TokenIssuer

BROKER_FILE: Final = "broker.pem"
CLIENT_FILE: Final = "client.pem"
PASSWORD_FILE: Final = "client.password"  # noqa: S105 - a file's name
CLIENT: Final = "client"
"""The name of the clients' user, and the common name of their certificate."""
BROKER: Final = "broker"
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISM_OF_CLIENTS: Final = "SCRAM-SHA-512"
LISTENER: Final = "CLIENTS"
PASSWORD_BYTES: Final = 16
SCRAM_JAAS_CONFIG: Final = f"{SCRAM_LOGIN_MODULE} required;"
OAUTHBEARER: Final = "OAUTHBEARER"
OAUTH_VALIDATOR: Final = f"{OAUTH_PACKAGE}.OAuthBearerValidatorCallbackHandler"
SSL: Final = "SSL"
SASL_SSL: Final = "SASL_SSL"
THIS_MACHINE: Final = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredListener:
    """The security of the listener for clients, and the way in that they are given.

    `properties` are a broker's; `scram_arguments` are those of a format (``--add-scram``).
    """

    mode: SecurityMode
    access: ClientAccess
    properties: Mapping[str, str]
    scram_arguments: tuple[str, ...] = ()
    issuer: TokenIssuer | None = None
    """The issuer of tokens, which runs as long as the cluster."""

    @property
    def listener(self) -> str:
        """The name of the listener for clients."""
        return LISTENER

    @property
    def protocol(self) -> str:
        """The security protocol of the listener."""
        return self.access.protocol


def secured_listener(mode: SecurityMode, folder: Path, advertised_host: str) -> SecuredListener:
    """Return the security of the cluster in a folder, with the files that are kept there.

    Certificates are new each time, but for the authority's: brokers may have another name.
    """
    files = folder / SECURITY_FOLDER
    files.mkdir(parents=True, exist_ok=True)
    authority = authority_of(files)
    hosts = sorted({*THIS_MACHINE, advertised_host})
    authority.certify(files / BROKER_FILE, BROKER, hosts=hosts)
    properties = {
        "ssl.keystore.type": PEM,
        "ssl.keystore.location": str(files / BROKER_FILE),
    }
    match mode:
        case SecurityMode.TLS:
            access = ClientAccess(protocol=SSL, authority=files / CERTIFICATE_FILE)
            return SecuredListener(mode=mode, access=access, properties=properties)
        case SecurityMode.MTLS:
            return _mutual(files, authority, properties)
        case SecurityMode.SCRAM:
            return _scram(files, properties)
        case SecurityMode.OAUTH:
            return _oauth(files, properties)


def _mutual(files: Path, authority: Authority, properties: Mapping[str, str]) -> SecuredListener:
    certificate = files / CLIENT_FILE
    authority.certify(certificate, CLIENT)
    trusted = files / CERTIFICATE_FILE
    return SecuredListener(
        mode=SecurityMode.MTLS,
        access=ClientAccess(protocol=SSL, authority=trusted, certificate=certificate),
        properties={
            **properties,
            "ssl.client.auth": "required",
            "ssl.truststore.type": PEM,
            "ssl.truststore.location": str(trusted),
        },
    )


def _scram(files: Path, properties: Mapping[str, str]) -> SecuredListener:
    user = _user(files)
    return SecuredListener(
        mode=SecurityMode.SCRAM,
        access=ClientAccess(
            protocol=SASL_SSL,
            authority=files / CERTIFICATE_FILE,
            mechanism=MECHANISM_OF_CLIENTS,
            user=user,
        ),
        properties={
            **properties,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            **{_jaas_key(mechanism): SCRAM_JAAS_CONFIG for mechanism in MECHANISMS},
        },
        scram_arguments=tuple(
            f"{mechanism}=[name={user.name},password={user.password}]" for mechanism in MECHANISMS
        ),
    )


def _oauth(files: Path, properties: Mapping[str, str]) -> SecuredListener:
    # Imported here: it takes its time, and other modes need none of it.
    from kvorum.node.embedded.client_security.token_issuer import AUDIENCE, TokenIssuer  # noqa: PLC0415 - see above

    user = _user(files)
    issuer = TokenIssuer(files, user)
    key_set_url = issuer.key_set_file.resolve().as_uri()
    return SecuredListener(
        mode=SecurityMode.OAUTH,
        access=ClientAccess(
            protocol=SASL_SSL,
            authority=files / CERTIFICATE_FILE,
            mechanism=OAUTHBEARER,
            user=user,
            token_url=issuer.token_url,
        ),
        properties={
            **properties,
            "sasl.enabled.mechanisms": OAUTHBEARER,
            _jaas_key(OAUTHBEARER): f"{OAUTH_LOGIN_MODULE} required;",
            _mechanism_key(OAUTHBEARER, "sasl.server.callback.handler.class"): OAUTH_VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": key_set_url,
            "sasl.oauthbearer.expected.issuer": issuer.url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            ALLOWED_URLS: key_set_url,
        },
        issuer=issuer,
    )


def _user(files: Path) -> User:
    """Return the clients' user, whose password is kept in a file."""
    password_file = files / PASSWORD_FILE
    if not password_file.exists():
        write_secret(password_file, secrets.token_hex(PASSWORD_BYTES).encode())
    return User(CLIENT, password_file.read_text(encoding="ascii"))


def _jaas_key(mechanism: str) -> str:
    return _mechanism_key(mechanism, "sasl.jaas.config")


def _mechanism_key(mechanism: str, key: str) -> str:
    return f"listener.name.{LISTENER.lower()}.{mechanism.lower()}.{key}"
