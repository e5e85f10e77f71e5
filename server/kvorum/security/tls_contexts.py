"""TLS contexts out of Kafka's keys: what Python's ssl needs for a listener, on either side."""

import ssl
from base64 import b64encode
from secrets import token_bytes
from tempfile import NamedTemporaryFile
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from kvorum.security.cipher_suites import TLS_1_3_SUITES, check_tls_1_3_suites, openssl_name
from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.loaded_stores import LoadedStores
from kvorum.security.ssl_settings import REQUESTED, REQUIRED, SslSettings
from kvorum.security.stores import KeyAndChain

_VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_DISABLED_VERSIONS: Final = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
"""Versions that Java knows and never speaks, whatever is configured."""
_PROTOCOLS: Final = frozenset({"tls", "ssl", *map(str.lower, (*_VERSIONS, *_DISABLED_VERSIONS))})
_CLIENT_AUTH: Final = {REQUIRED: ssl.CERT_REQUIRED, REQUESTED: ssl.CERT_OPTIONAL}


def client_context(settings: SslSettings) -> ssl.SSLContext:
    """Return the context of connections to a listener; raises InvalidSslSettingsError."""
    return client_context_of(LoadedStores.of(settings))


def client_context_of(stores: LoadedStores) -> ssl.SSLContext:
    """Return the same with stores that were read already; raises InvalidSslSettingsError."""
    settings = stores.settings
    _check_protocol(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # With an empty name the host is not checked.
    context.check_hostname = bool(settings.endpoint_identification_algorithm)
    if not _limit(context, settings):
        raise InvalidSslSettingsError(
            "ssl.enabled.protocols and ssl.cipher.suites have a name that is not known, or leave "
            "nothing to connect with"
        )
    if stores.key is not None:
        _use_key(context, stores.key)
    _trust(context, stores.trusted, ssl.Purpose.SERVER_AUTH)
    return context


def server_context(stores: LoadedStores) -> ssl.SSLContext | None:
    """Return the context of a listener with these stores; raises InvalidSslSettingsError.

    It is None where no connection can be: Kafka, too, starts with unknown versions or suites, and
    closes each connection. Without a key store every handshake fails.
    """
    settings = stores.settings
    _check_protocol(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_RENEGOTIATION
    if not _limit(context, settings):
        return None
    if stores.key is not None:
        _use_key(context, stores.key)
    context.verify_mode = _CLIENT_AUTH.get(settings.client_auth, ssl.CERT_NONE)
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, stores.trusted, ssl.Purpose.CLIENT_AUTH)
    return context


def _check_protocol(settings: SslSettings) -> None:
    if settings.protocol.lower() not in _PROTOCOLS:
        raise InvalidSslSettingsError(
            f"java.security.NoSuchAlgorithmException: {settings.protocol} SSLContext not available"
        )
    check_tls_1_3_suites(settings.cipher_suites)


def _limit(context: ssl.SSLContext, settings: SslSettings) -> bool:
    """Limit the versions and suites of a context; return whether any is left and all are known."""
    if not {*_VERSIONS, *_DISABLED_VERSIONS}.issuperset(settings.enabled_protocols):
        return False
    versions = {_VERSIONS[name] for name in settings.enabled_protocols if name in _VERSIONS}
    suites = settings.cipher_suites
    if suites:
        older = [openssl_name(name) for name in suites if name not in TLS_1_3_SUITES]
        known = [name for name in older if name is not None]
        if len(known) < len(older) or (known and not _set_ciphers(context, known)):
            return False
        if not older:
            versions.discard(ssl.TLSVersion.TLSv1_2)
        if TLS_1_3_SUITES.isdisjoint(suites):
            versions.discard(ssl.TLSVersion.TLSv1_3)
    if not versions:
        return False
    context.minimum_version = min(versions)
    context.maximum_version = max(versions)
    return True


def _set_ciphers(context: ssl.SSLContext, names: list[str]) -> bool:
    """Set the suites of TLS 1.2; return whether OpenSSL has all of them."""
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        return False
    return {suite["name"] for suite in context.get_ciphers()}.issuperset(names)


def _use_key(context: ssl.SSLContext, keys: KeyAndChain) -> None:
    """Have a context show a certificate; raises InvalidSslSettingsError.

    Python's ssl reads keys from files alone. The file has the key under a password of the moment.
    """
    password = b64encode(token_bytes(32))
    with NamedTemporaryFile() as file:
        file.write(
            keys.key.private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password)
            )
        )
        file.writelines(certificate.public_bytes(Encoding.PEM) for certificate in keys.chain)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=password)
        except ssl.SSLError as error:
            raise InvalidSslSettingsError(
                f"OpenSSL does not take the key and its certificate: {error.reason or error}"
            ) from error


def _trust(
    context: ssl.SSLContext, trusted: tuple[x509.Certificate, ...] | None, purpose: ssl.Purpose
) -> None:
    """Have a context trust certificates, and as in Java also such as are no authority's."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if trusted is None:
        context.load_default_certs(purpose)
        return
    encoded = b"".join(certificate.public_bytes(Encoding.DER) for certificate in trusted)
    if encoded:
        context.load_verify_locations(cadata=encoded)
