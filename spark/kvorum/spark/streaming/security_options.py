"""The options of a stream over a secured quorum: Kafka's names, with ``kafka.`` before them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kvorum.spark.errors import OptionError
from kvorum.spark.streaming.sasl import MECHANISMS
from kvorum.spark.streaming.security import Credentials, Security, Tls

PREFIX: Final = "kafka."
PROTOCOL: Final = "kafka.security.protocol"
MECHANISM: Final = "kafka.sasl.mechanism"
JAAS: Final = "kafka.sasl.jaas.config"
TRUSTED_FILE: Final = "kafka.ssl.truststore.location"
TRUSTED_TEXT: Final = "kafka.ssl.truststore.certificates"
TRUSTED_TYPE: Final = "kafka.ssl.truststore.type"
OWN_FILE: Final = "kafka.ssl.keystore.location"
OWN_TYPE: Final = "kafka.ssl.keystore.type"
KEY_PASSWORD: Final = "kafka.ssl.key.password"  # noqa: S105 - the name of the option
HOST_CHECK: Final = "kafka.ssl.endpoint.identification.algorithm"
SASL_OPTIONS: Final = (MECHANISM, JAAS)
TLS_OPTIONS: Final = (
    *(TRUSTED_FILE, TRUSTED_TEXT, TRUSTED_TYPE, OWN_FILE, OWN_TYPE, KEY_PASSWORD),
    HOST_CHECK,
)
SECURITY_OPTIONS: Final = (PROTOCOL, *SASL_OPTIONS, *TLS_OPTIONS)
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ENTRY: Final = re.compile(r"\s*(\S+)\s+required\s+(.*?)\s*;\s*", re.DOTALL)
_PAIR: Final = re.compile(
    r"""\s*(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))"""
)
_ESCAPED: Final = re.compile(r"\\(.)")


def security_options(options: Mapping[str, str]) -> Security:
    """Return how connections are secured.

    Raises `OptionError`, which has no value of an option that may be secret.
    """
    given = {name.lower(): value for name, value in options.items()}
    protocol = given.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise OptionError(f"option {PROTOCOL!r} is {protocol!r}: it is {_listed(PROTOCOLS)}")
    with_sasl, with_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    for names, is_used in ((SASL_OPTIONS, with_sasl), (TLS_OPTIONS, with_tls)):
        for name in names:
            if name in given and not is_used:
                raise OptionError(f"option {name!r} does not go with {PROTOCOL!r} {protocol}")
    return Security(_tls(given) if with_tls else None, _credentials(given) if with_sasl else None)


def _tls(given: Mapping[str, str]) -> Tls:
    for name in (TRUSTED_TYPE, OWN_TYPE):
        if given.get(name, "PEM").strip().upper() != "PEM":
            raise OptionError(f"option {name!r} is {given[name]!r}: only PEM is read")
    if TRUSTED_FILE in given and TRUSTED_TEXT in given:
        raise OptionError(f"options {TRUSTED_FILE!r} and {TRUSTED_TEXT!r} do not go together")
    check = given.get(HOST_CHECK, "https").strip().lower()
    if check not in ("https", ""):
        raise OptionError(f"option {HOST_CHECK!r} is {check!r}: it is https, or empty for none")
    return Tls(
        trusted_file=given.get(TRUSTED_FILE),
        trusted_text=given.get(TRUSTED_TEXT),
        own_file=given.get(OWN_FILE),
        key_password=given.get(KEY_PASSWORD),
        checks_host=bool(check),
    )


def _credentials(given: Mapping[str, str]) -> Credentials:
    mechanism = given.get(MECHANISM, "").strip().upper()
    if mechanism not in MECHANISMS:
        raise OptionError(f"option {MECHANISM!r} is {mechanism!r}: it is {_listed(MECHANISMS)}")
    family = mechanism.partition("-")[0].capitalize()
    entry = _ENTRY.fullmatch(given.get(JAAS, ""))
    pairs = None if entry is None else _pairs(entry.group(2))
    if (
        entry is None
        or pairs is None
        or not entry.group(1).endswith(f".{family}LoginModule")
        or not {"username", "password"} <= pairs.keys()
    ):
        module = f"org.apache.kafka.common.security.{family.lower()}.{family}LoginModule"
        raise OptionError(f'option {JAAS!r} is not {module} required username="…" password="…";')
    return Credentials(mechanism, pairs["username"], pairs["password"])


def _pairs(text: str) -> dict[str, str] | None:
    """Return the settings of an entry; None for other text."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _PAIR.match(text, place)
        if match is None:
            return None
        name, *quoted, bare = match.groups()
        value = next((each for each in quoted if each is not None), None)
        found[name] = bare if value is None else _ESCAPED.sub(r"\1", value)
        place = match.end()
    return found


def _listed(names: Mapping[str, object] | tuple[str, ...]) -> str:
    *some, last = names
    return f"{', '.join(some)} or {last}"
