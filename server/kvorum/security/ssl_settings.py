"""The settings of TLS, of one listener: Kafka's keys that begin with ``ssl.``.

Passwords and keys are not in the text of these objects, which may get into a log.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

PEM: Final = "PEM"
"""The type of stores that are text; the others are files in Java's forms."""
REQUIRED: Final = "required"
REQUESTED: Final = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStoreSettings:
    """The place of a private key with its certificates, in a file or as text."""

    type: Annotated[str, "ssl.keystore.type"]
    location: Annotated[str | None, "ssl.keystore.location"]
    password: Annotated[str | None, "ssl.keystore.password"] = field(repr=False)
    key: Annotated[str | None, "ssl.keystore.key"] = field(repr=False)
    certificate_chain: Annotated[str | None, "ssl.keystore.certificate.chain"]
    key_password: Annotated[str | None, "ssl.key.password"] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStoreSettings:
    """The place of the certificates that are trusted, in a file or as text."""

    type: Annotated[str, "ssl.truststore.type"]
    location: Annotated[str | None, "ssl.truststore.location"]
    password: Annotated[str | None, "ssl.truststore.password"] = field(repr=False)
    certificates: Annotated[str | None, "ssl.truststore.certificates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SslSettings:
    """The stores of a listener, the versions and suites it speaks, and what it asks of peers.

    The connections of a node to such a listener have the same settings.
    """

    key_store: KeyStoreSettings
    trust_store: TrustStoreSettings
    protocol: Annotated[str, "ssl.protocol"]
    enabled_protocols: Annotated[tuple[str, ...], "ssl.enabled.protocols"]
    cipher_suites: Annotated[tuple[str, ...], "ssl.cipher.suites"]
    client_auth: Annotated[str, "ssl.client.auth"]
    endpoint_identification_algorithm: Annotated[str, "ssl.endpoint.identification.algorithm"]
    principal_mapping_rules: Annotated[str, "ssl.principal.mapping.rules"]
    allows_dn_changes: Annotated[bool, "ssl.allow.dn.changes"]
    allows_san_changes: Annotated[bool, "ssl.allow.san.changes"]
