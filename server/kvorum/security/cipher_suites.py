"""The names of cipher suites: Kafka's keys have those of the standard, OpenSSL has its own."""

import re
from collections.abc import Iterable
from typing import Final

from kvorum.security.errors import InvalidSslSettingsError

TLS_1_3_SUITES: Final = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
_SUITE: Final = re.compile(
    r"TLS_(?P<exchange>RSA|(?:EC)?DHE_[A-Z]+)_WITH_"
    r"(?P<cipher>AES_(?:128|256)_(?:GCM|CBC)|CHACHA20_POLY1305)_(?P<hash>SHA\d*)"
)


def check_tls_1_3_suites(names: Iterable[str]) -> None:
    """Refuse names of some suites of TLS 1.3, which Python's ssl can only have all or none of."""
    named = TLS_1_3_SUITES.intersection(names)
    if named and named != TLS_1_3_SUITES:
        raise InvalidSslSettingsError(
            f"ssl.cipher.suites has some suites of TLS 1.3, {', '.join(sorted(named))}, but kvorum "
            f"has all three or none: add {', '.join(sorted(TLS_1_3_SUITES - named))}, or leave "
            "TLSv1.3 out of ssl.enabled.protocols and these out of ssl.cipher.suites"
        )


def openssl_name(suite: str) -> str | None:
    """Return OpenSSL's name of a suite of TLS 1.2, None for one that is not known here."""
    match = _SUITE.fullmatch(suite)
    if match is None:
        return None
    exchange = "" if match["exchange"] == "RSA" else match["exchange"].replace("_", "-") + "-"
    if match["cipher"].startswith("CHACHA20"):
        return f"{exchange}CHACHA20-POLY1305"
    _, bits, mode = match["cipher"].split("_")
    return f"{exchange}AES{bits}-{'GCM-' if mode == 'GCM' else ''}{match['hash']}"
