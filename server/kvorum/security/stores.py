"""The stores of Kafka's keys: a private key with its certificates, and certificates to trust.

A store is a PEM text, a PEM file, or a PKCS12 file, which is also read under the type JKS, Kafka's
default. Java's own form JKS is not read. Texts of passwords are in no error.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12KeyAndCertificates,
    load_pkcs12,
)

from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.pem import PrivateKey, read_certificates, read_key, served_key
from kvorum.security.ssl_settings import PEM, KeyStoreSettings, TrustStoreSettings

_BINARY_TYPES: Final = frozenset({"JKS", "PKCS12"})
_JAVA_KEY_STORE: Final = bytes.fromhex("feedfeed")
_CONVERT: Final = (
    "kvorum reads PKCS12 and PEM, not JKS: convert it by keytool -importkeystore "
    "-deststoretype PKCS12"
)
Read = TypeVar("Read")


class KeyAndChain(NamedTuple):
    """A private key, and its certificate with those that lead to its authority."""

    key: PrivateKey
    chain: tuple[x509.Certificate, ...]


def is_same_name(one: x509.Name, other: x509.Name) -> bool:
    """Return whether two names are equal; as in Java, capital letters do not count."""
    return one == other or one.rfc4514_string().lower() == other.rfc4514_string().lower()


def load_key_store(settings: KeyStoreSettings) -> KeyAndChain | None:
    """Return the key of a listener, None without a key store; raises InvalidSslSettingsError."""
    if settings.key is not None:
        return _load_key_of_text(settings, settings.key)
    if settings.certificate_chain is not None:
        raise InvalidSslSettingsError(
            "SSL certificate chain is specified, but private key is not specified"
        )
    location = settings.location
    if settings.type == PEM and location is not None:
        if settings.password is not None:
            raise InvalidSslSettingsError(
                "SSL key store password cannot be specified with PEM format, only key password may "
                "be specified"
            )
        return _loaded(location, PEM, lambda: _key_of_pem(_text(location), settings.key_password))
    if location is None:
        if settings.password is not None:
            raise InvalidSslSettingsError(
                "SSL key store is not specified, but key store password is specified."
            )
        return None
    if settings.password is None:
        raise InvalidSslSettingsError(
            "SSL key store is specified, but key store password is not specified."
        )
    password = settings.key_password or settings.password
    return _loaded(
        location, settings.type, lambda: _key_of_pkcs12(location, settings.type, password)
    )


def load_trust_store(settings: TrustStoreSettings) -> tuple[x509.Certificate, ...] | None:
    """Return the certificates to trust, None for the system's; raises InvalidSslSettingsError."""
    location = settings.location
    certificates = settings.certificates
    if certificates is not None and settings.type != PEM:
        raise InvalidSslSettingsError(
            "SSL trust store certs can be specified only for PEM, but trust store type is "
            f"{settings.type}."
        )
    if certificates is not None and location is not None:
        raise InvalidSslSettingsError(
            "Both SSL trust store location and separate trust certificates are specified."
        )
    if settings.type == PEM and (certificates or location) and settings.password is not None:
        raise InvalidSslSettingsError(
            "SSL trust store password cannot be specified for PEM format."
        )
    if certificates is not None:
        return read_certificates(certificates)
    if location is None:
        if settings.password is not None:
            raise InvalidSslSettingsError(
                "SSL trust store is not specified, but trust store password is specified."
            )
        return None
    if settings.type == PEM:
        return _loaded(location, PEM, lambda: read_certificates(_text(location)))
    return _loaded(
        location,
        settings.type,
        lambda: _trusted_of_pkcs12(location, settings.type, settings.password),
    )


def _load_key_of_text(settings: KeyStoreSettings, key: str) -> KeyAndChain:
    if settings.type != PEM:
        raise InvalidSslSettingsError(
            f"SSL private key can be specified only for PEM, but key store type is {settings.type}."
        )
    if settings.certificate_chain is None:
        raise InvalidSslSettingsError(
            "SSL private key is specified, but certificate chain is not specified."
        )
    if settings.location is not None:
        raise InvalidSslSettingsError(
            "Both SSL key store location and separate private key are specified."
        )
    if settings.password is not None:
        raise InvalidSslSettingsError(
            "SSL key store password cannot be specified with PEM format, only key password may be "
            "specified."
        )
    return _key_and_chain(key, settings.certificate_chain, settings.key_password)


def _key_of_pem(text: str, password: str | None) -> KeyAndChain:
    return _key_and_chain(text, text, password)


def _key_and_chain(key: str, chain: str, password: str | None) -> KeyAndChain:
    try:
        private_key = read_key(key, password)
        certificates = read_certificates(chain)
        _check_chain(certificates)
    except InvalidSslSettingsError as error:
        raise InvalidSslSettingsError(f"Invalid PEM keystore configs: {error}") from error
    return KeyAndChain(private_key, certificates)


def _check_chain(certificates: Sequence[x509.Certificate]) -> None:
    """Raise InvalidSslSettingsError unless each certificate is followed by its issuer's, once."""
    is_ordered = all(
        is_same_name(certificate.issuer, after.subject)
        for certificate, after in pairwise(certificates)
    )
    if not is_ordered or len(set(certificates)) < len(certificates):
        raise InvalidSslSettingsError("Certificate chain is not valid")


def _key_of_pkcs12(location: str, kind: str, password: str) -> KeyAndChain | None:
    store = _pkcs12(location, kind, password)
    if store.key is None or store.cert is None:
        return None
    others = tuple(each.certificate for each in store.additional_certs)
    return KeyAndChain(served_key(store.key), (store.cert.certificate, *others))


def _trusted_of_pkcs12(
    location: str, kind: str, password: str | None
) -> tuple[x509.Certificate, ...]:
    store = _pkcs12(location, kind, password)
    entries = (
        [*store.additional_certs] if store.cert is None else [store.cert, *store.additional_certs]
    )
    return tuple(each.certificate for each in entries)


def _pkcs12(location: str, kind: str, password: str | None) -> PKCS12KeyAndCertificates:
    encoded = _content(location)
    if kind.upper() not in _BINARY_TYPES:
        raise InvalidSslSettingsError(f"{kind} not found")
    if encoded.startswith(_JAVA_KEY_STORE):
        raise InvalidSslSettingsError(_CONVERT)
    try:
        return load_pkcs12(encoded, None if password is None else password.encode())
    except ValueError as error:
        # The library's text says no more than that, or names what is wrong with the form.
        raise InvalidSslSettingsError(str(error)) from error


def _loaded(location: str, kind: str, load: Callable[[], Read]) -> Read:
    """Return what `load` returns; the error names the store, as Kafka's does."""
    try:
        return load()
    except InvalidSslSettingsError as error:
        store = f"PEM SSL keystore {location}" if kind == PEM else _typed(location, kind)
        raise InvalidSslSettingsError(f"Failed to load {store}: {error}") from error


def _typed(location: str, kind: str) -> str:
    return f"SSL keystore {location} of type {kind}"


def _text(location: str) -> str:
    return _content(location).decode(errors="replace")


def _content(location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except (OSError, ValueError) as error:
        # A NUL, which no name of a file has, is a ValueError.
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidSslSettingsError(f"Unable to read file {location}: {problem}") from error
