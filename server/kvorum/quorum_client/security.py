"""The security of a stream's connections: its options, TLS, and SASL with a name and a password.

The options have Kafka's names, with ``kafka.`` before them. SASL is the client's side of PLAIN
(RFC 4616), and of SCRAM (RFC 5802) with two hashes. What is secret is in no text that Python makes
of these values.
"""

import base64
import binascii
import hashlib
import hmac
import re
import ssl
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.quorum_client.errors import ClientOptionError, QuorumError

ITERATIONS_MIN: Final = 4096
"""The fewest that the specification of SCRAM allows."""
ITERATIONS_MAX: Final = 1_000_000
"""A second of work: no server is set to more."""
_NO_BINDING: Final = "n,,"
"""The header of a client without channel binding (RFC 5802)."""
Exchange: TypeAlias = Generator[bytes, bytes]
"""The requests of a client; it gets the server's answer to each."""

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


@dataclass(frozen=True, slots=True)
class Tls:
    """Which certificates are trusted, and which one is shown; paths are of PEM files.

    Without `trusted_file` and `trusted_text` the certificates of the system are trusted. `own_file`
    has the private key and its certificates.
    """

    trusted_file: str | None = None
    trusted_text: str | None = None
    own_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_host: bool = True

    def context(self) -> ssl.SSLContext:
        """Return what Python's TLS needs; raises `QuorumError` for a file that is of no use."""
        try:
            context = ssl.create_default_context(cafile=self.trusted_file, cadata=self.trusted_text)
        except (OSError, ValueError) as error:
            name = "certificates" if self.trusted_file is None else "location"
            raise _unusable(f"kafka.ssl.truststore.{name}", self.trusted_file, error) from None
        context.check_hostname = self.checks_host
        if self.own_file is not None:
            try:
                # Without a password Python would ask for one at the terminal.
                context.load_cert_chain(self.own_file, password=self.key_password or "")
            except (OSError, ValueError) as error:
                raise _unusable("kafka.ssl.keystore.location", self.own_file, error) from None
        return context


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and a password, and the mechanism of SASL that takes them."""

    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """The security protocol of a quorum's listener; neither TLS nor SASL is PLAINTEXT."""

    tls: Tls | None = None
    credentials: Credentials | None = None

    @property
    def protocol(self) -> str:
        """The name of the protocol, as Kafka has it."""
        if self.credentials is None:
            return "PLAINTEXT" if self.tls is None else "SSL"
        return "SASL_PLAINTEXT" if self.tls is None else "SASL_SSL"


PLAINTEXT: Final = Security()


def _unusable(option: str, path: str | None, error: Exception) -> QuorumError:
    where = "" if path is None else f"{path}: "
    reason = getattr(error, "strerror", None) or str(error)
    return QuorumError(f"option {option!r}: {where}{reason}")


class SaslError(Exception):
    """The server sent a message of another mechanism, or does not know the password."""


def _plain(credentials: Credentials, _nonce: str) -> Exchange:
    """Send name and password."""
    yield f"\0{credentials.user}\0{credentials.password}".encode()


def _scram(hash_name: str, credentials: Credentials, nonce: str) -> Exchange:
    """Prove the knowledge of the password, and have the server prove it."""
    user = credentials.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    answer = yield f"{_NO_BINDING}{first}".encode()
    fields = _fields(answer)
    both, salt, iterations = fields.get("r", ""), _bytes(fields, "s"), fields.get("i", "")
    if not both.startswith(nonce) or both == nonce:
        raise SaslError("the server's nonce does not continue the client's")
    if not iterations.isdecimal() or not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
        raise SaslError(f"the server asks for {iterations[:20]!r} iterations")
    salted = hashlib.pbkdf2_hmac(hash_name, credentials.password.encode(), salt, int(iterations))
    binding = base64.b64encode(_NO_BINDING.encode()).decode()
    last = f"c={binding},r={both}"
    signed = ",".join((first, answer.decode(), last)).encode()
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    signature = hmac.digest(stored_key, signed, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = yield f"{last},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), signed, hash_name)
    if not hmac.compare_digest(_bytes(_fields(answer), "v"), expected):
        raise SaslError("the server does not know the password")


MECHANISMS: Final[Mapping[str, Callable[[Credentials, str], Exchange]]] = MappingProxyType(
    {
        "PLAIN": _plain,
        "SCRAM-SHA-256": partial(_scram, "sha256"),
        "SCRAM-SHA-512": partial(_scram, "sha512"),
    }
)
"""The mechanisms by Kafka's names; each takes a nonce that no other exchange has."""


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise SaslError("a message of the server is no text") from None
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _bytes(fields: Mapping[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(fields[name], validate=True)
    except (KeyError, binascii.Error):
        raise SaslError(f"a message of the server lacks its field {name!r}") from None


def security_options(options: Mapping[str, str]) -> Security:
    """Return how connections are secured.

    Raises `ClientOptionError`, which has no value of an option that may be secret.
    """
    given = {name.lower(): value for name, value in options.items()}
    protocol = given.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ClientOptionError(f"option {PROTOCOL!r} is {protocol!r}: it is {_listed(PROTOCOLS)}")
    with_sasl, with_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    for names, is_used in ((SASL_OPTIONS, with_sasl), (TLS_OPTIONS, with_tls)):
        for name in names:
            if name in given and not is_used:
                raise ClientOptionError(f"option {name!r} does not go with {PROTOCOL!r} {protocol}")
    return Security(_tls(given) if with_tls else None, _credentials(given) if with_sasl else None)


def _tls(given: Mapping[str, str]) -> Tls:
    for name in (TRUSTED_TYPE, OWN_TYPE):
        if given.get(name, "PEM").strip().upper() != "PEM":
            raise ClientOptionError(f"option {name!r} is {given[name]!r}: only PEM is read")
    if TRUSTED_FILE in given and TRUSTED_TEXT in given:
        raise ClientOptionError(f"options {TRUSTED_FILE!r} and {TRUSTED_TEXT!r} do not go together")
    check = given.get(HOST_CHECK, "https").strip().lower()
    if check not in ("https", ""):
        raise ClientOptionError(
            f"option {HOST_CHECK!r} is {check!r}: it is https, or empty for none"
        )
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
        raise ClientOptionError(
            f"option {MECHANISM!r} is {mechanism!r}: it is {_listed(MECHANISMS)}"
        )
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
        raise ClientOptionError(
            f'option {JAAS!r} is not {module} required username="…" password="…";'
        )
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
