"""The stores of a listener as they were read, and what may be other in those that follow them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography import x509

from kvorum.security.errors import UnfitStoresError
from kvorum.security.ssl_settings import SslSettings
from kvorum.security.stores import KeyAndChain, is_same_name, load_key_store, load_trust_store

_ALIAS: Final = "kafka"
"""The name of a key in a PEM store, which Kafka gives it."""


@dataclass(frozen=True, slots=True)
class LoadedStores:
    """A key and certificates to trust, with the settings and the times of the files they are of."""

    settings: SslSettings
    modified_ns: tuple[int, ...]
    key: KeyAndChain | None
    trusted: tuple[x509.Certificate, ...] | None

    @classmethod
    def of(cls, settings: SslSettings) -> Self:
        """Read the stores; raises InvalidSslSettingsError."""
        # A file that is replaced after this is read again at the next look.
        modified_ns = _modified_ns(settings)
        return cls(
            settings,
            modified_ns,
            load_key_store(settings.key_store),
            load_trust_store(settings.trust_store),
        )

    def is_of(self, settings: SslSettings) -> bool:
        """Return whether these are the stores of such settings, and their files as they are now."""
        return self.settings == settings and self.modified_ns == _modified_ns(settings)

    def check_successor(self, after: Self) -> None:
        """Raise UnfitStoresError for stores that may not follow these without a restart.

        Those are what Kafka's SslFactory refuses: a store that is added or removed, another
        subject, and fewer names of hosts, unless the settings allow it.
        """
        _check_presence("keystore", self.key, after.key)
        _check_presence("truststore", self.trusted, after.trusted)
        if self.key is None or after.key is None:
            return
        before = self.key.chain[0]
        now = after.key.chain[0]
        if not self.settings.allows_dn_changes and not is_same_name(before.subject, now.subject):
            raise UnfitStoresError(
                f"Keystore DistinguishedName does not match:  existing={_named(before)}, "
                f"new={_named(now)}"
            )
        if not self.settings.allows_san_changes and not _names(before) <= _names(now):
            raise UnfitStoresError(
                "Keystore SubjectAltNames do not match:  existing="
                f"{sorted(_names(before))}, new={sorted(_names(now))}"
            )


def _check_presence(what: str, before: object | None, after: object | None) -> None:
    if before is None and after is not None:
        raise UnfitStoresError(
            f"Cannot add SSL {what} to an existing listener for which no {what} was configured."
        )
    if before is not None and after is None:
        raise UnfitStoresError(
            f"Cannot remove the SSL {what} from an existing listener for which a "
            f"{what} was configured."
        )


def _named(certificate: x509.Certificate) -> str:
    """Return the subject of a certificate as Kafka shows it."""
    parts = (part.rfc4514_string() for part in reversed(list(certificate.subject.rdns)))
    return f"{{alias={_ALIAS}, DN={', '.join(parts)}}}"


def _names(certificate: x509.Certificate) -> set[str]:
    """Return the names and addresses of a certificate's subject."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in found.value}


def _modified_ns(settings: SslSettings) -> tuple[int, ...]:
    locations = (settings.key_store.location, settings.trust_store.location)
    return tuple(_modified_ns_of(Path(location)) for location in locations if location)


def _modified_ns_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        # Reading it gives the error.
        return 0
