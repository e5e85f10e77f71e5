"""Key stores and trust stores, by Kafka's own code and by ours: what is refused, and how."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.certificates import PASSWORD, Authority
from tests.support.kafka.java import Java

from kvorum.metadata.config_definitions import BROKER_CONFIGS, parse_all, read_settings
from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.loaded_stores import LoadedStores
from kvorum.security.ssl_settings import SslSettings
from kvorum.security.tls_contexts import server_context
from kvorum.storage.small_files.java_properties import store_java_properties

REQUIRED_KEYS: Final = {
    "process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER",
}  # fmt: skip
CROWD: Final = 3000
CHANGES: Final = "=-\n !é"
"""Characters that damage a text but no certificate in it: none is a digit of base64."""
FINE: Final = "="
CAUSE: Final = " <- "
"""The word between the messages of the judge; ours is one line."""
OTHER_WORDS: Final = frozenset(
    {"pkcs12 with another password for its key", "password of a plain key"}
)
"""The cases in which Java's own text is Kafka's."""


def cases(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return settings by what is right or wrong with them."""
    authority = Authority()
    own = authority.certify("localhost")
    expired = authority.certify("localhost", is_expired=True)
    key = own.key_text
    chain = own.certificate_text
    rsa_key = rsa.generate_private_key(65537, 2048)
    pkcs1 = rsa_key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    ed_key = ed25519.Ed25519PrivateKey.generate()
    ed_text = ed_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pkcs12 = str(own.write_pkcs12(folder / "own.p12"))
    trusted = str(authority.write_pkcs12(folder / "trusted.p12"))

    def file(name: str, text: str) -> str:
        path = folder / name
        path.write_text(text)
        return str(path)

    def text(**values: str) -> Mapping[str, str]:
        names = {"key": key, "certificate_chain": chain, "type": "PEM", **values}
        return {f"ssl.keystore.{name.replace('_', '.')}": value for name, value in names.items()}

    def store(**values: str) -> Mapping[str, str]:
        return {f"ssl.keystore.{name}": value for name, value in values.items()}

    def trust(**values: str) -> Mapping[str, str]:
        return {f"ssl.truststore.{name}": value for name, value in values.items()}

    garbage = file("garbage", "garbage")
    return {
        "nothing": {},
        "text": text(),
        "two certificates": text(certificate_chain=chain + authority.certificate_text),
        "certificates out of order": text(certificate_chain=authority.certificate_text + chain),
        "a foreign issuer": text(certificate_chain=chain + Authority("other").certificate_text),
        "a certificate thousands of times": text(certificate_chain=chain * CROWD),
        "issuers in a circle": text(certificate_chain=chain + authority.certificate_text * 2),
        "expired": text(key=expired.key_text, certificate_chain=expired.certificate_text),
        "words around": text(certificate_chain=f"Bag Attributes\n  x: 1\n{chain}"),
        "windows line ends": text(key=key.replace("\n", "\r\n")),
        "pkcs1": text(key=pkcs1.decode()),
        "ed25519": text(key=ed_text.decode()),
        "two keys": text(key=key + key),
        "no key": text(key="x"),
        "no certificate": text(certificate_chain="x"),
        "no base64": text(certificate_chain=chain.replace("MII", "M!!", 1)),
        "empty certificate": text(
            certificate_chain="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        ),
        "password of a plain key": {**text(), "ssl.key.password": "x"},
        "text and location": text(location="/x"),
        "text and empty location": text(location=""),
        "text and password": text(password="x"),
        "text of another type": text(type="JKS"),
        "chain without key": store(type="PEM", **{"certificate.chain": chain}),
        "key without chain": store(type="PEM", key=key),
        "pem": store(type="PEM", location=file("own.pem", key + chain)),
        "pem, chain first": store(type="PEM", location=file("first.pem", chain + key)),
        "pem with password": store(type="PEM", location=file("own.pem", key), password="x"),
        "pem missing": store(type="PEM", location="/nowhere/own.pem"),
        "pem without key": store(type="PEM", location=file("chain.pem", chain)),
        "pem without certificate": store(type="PEM", location=file("key.pem", key)),
        "pem in lower case": store(type="pem", location=file("own.pem", key + chain)),
        "lower case with password": store(type="pem", location=garbage, password="x"),
        "password alone": store(password="x"),
        "location alone": store(location="/x"),
        "pkcs12": store(type="PKCS12", location=pkcs12, password=PASSWORD),
        "pkcs12 in lower case": store(type="pkcs12", location=pkcs12, password=PASSWORD),
        "pkcs12 as jks": store(location=pkcs12, password=PASSWORD),
        "pkcs12 as something": store(type="FOO", location=pkcs12, password=PASSWORD),
        "pkcs12 with a wrong password": store(type="PKCS12", location=pkcs12, password="wrong"),
        "pkcs12 with another password for its key": {
            **store(type="PKCS12", location=pkcs12, password=PASSWORD),
            "ssl.key.password": "another",
        },
        "pkcs12 missing": store(type="PKCS12", location="/nowhere/own.p12", password="x"),
        "garbage": store(location=garbage, password="x"),
        "trusted text": trust(type="PEM", certificates=chain),
        "trusted twice": trust(type="PEM", certificates=chain + chain),
        "trusted thousands of times": trust(type="PEM", certificates=chain * CROWD),
        "trusted text of another type": trust(certificates=chain),
        "trusted text and location": trust(type="PEM", certificates=chain, location="/x"),
        "trusted text and password": trust(type="PEM", certificates=chain, password="x"),
        "trusted garbage": trust(type="PEM", certificates="x"),
        "trusted pem": trust(type="PEM", location=file("trusted.pem", chain)),
        "trusted pem and password": trust(type="PEM", location=garbage, password="x"),
        "trusted pem of garbage": trust(type="PEM", location=garbage),
        "trusted pem missing": trust(type="PEM", location="/nowhere/trusted.pem"),
        "trusted pkcs12": trust(type="PKCS12", location=trusted, password=PASSWORD),
        "trusted pkcs12 as jks": trust(location=trusted, password=PASSWORD),
        "trusted jks of garbage": trust(location=garbage, password="x"),
        "trusted jks missing": trust(location="/nowhere/trusted.jks"),
        "trusted password alone": trust(password="x"),
        "unknown protocol": {"ssl.protocol": "TLSv9"},
        "older protocol": {"ssl.protocol": "TLSv1.2"},
        "unknown versions": {"ssl.enabled.protocols": "TLSv1.2,FOO"},
        "unknown suites": {"ssl.cipher.suites": "FOO"},
    }


def refusal(settings: Mapping[str, str]) -> str:
    """Return why our node refuses settings, in the judge's form without causes."""
    values = parse_all(BROKER_CONFIGS, {**REQUIRED_KEYS, **settings})
    try:
        server_context(LoadedStores.of(read_settings(SslSettings, values.__getitem__)))
    except InvalidSslSettingsError as error:
        return f"!{error}"
    return FINE


def text_settings(key: str, chain: str) -> Mapping[str, str]:
    """Return the settings of a key and its certificates as text."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
    }


def damaged(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text cut, without one character and with another one, at each place."""
    for place in range(len(text)):
        other = CHANGES[place % len(CHANGES)]
        yield f"cut at {place}", text[:place]
        yield f"without {place}", text[:place] + text[place + 1 :]
        yield f"{other!r} at {place}", text[:place] + other + text[place + 1 :]


def differences(java: Java, given: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, str]]:
    """Return the cases in which one side refuses what the other takes, or by other words."""
    lines = [
        store_java_properties(settings.items(), comments=[]).encode().hex()
        for settings in given.values()
    ]
    answers = java.answers("SslStores", asked=lines)
    return [
        (what, theirs, ours)
        for (what, settings), answer in zip(given.items(), answers, strict=True)
        if not _is_alike(what, ours := refusal(settings), theirs := bytes.fromhex(answer).decode())
    ]


def test_stores_are_loaded_and_refused_as_by_kafka(java: Java, tmp_path: Path) -> None:
    assert differences(java, cases(tmp_path)) == []


def test_texts_that_are_damaged_anywhere_are_refused_as_by_kafka(java: Java) -> None:
    own = Authority().certify("localhost")
    key = own.key_text
    chain = own.certificate_text
    damaged_keys = {f"key {what}": text_settings(text, chain) for what, text in damaged(key)}
    damaged_chains = {f"chain {what}": text_settings(key, text) for what, text in damaged(chain)}
    assert differences(java, {**damaged_keys, **damaged_chains}) == []


@pytest.mark.slow
def test_pkcs12_files_that_are_cut_anywhere_are_refused_as_by_kafka(
    java: Java, tmp_path: Path
) -> None:
    authority = Authority()
    whole = {
        "keystore": authority.certify("localhost").write_pkcs12(tmp_path / "own.p12"),
        "truststore": authority.write_pkcs12(tmp_path / "trusted.p12"),
    }
    given: dict[str, Mapping[str, str]] = {}
    for store, path in whole.items():
        content = path.read_bytes()
        for end in range(len(content)):
            cut = path.with_name(f"{store}-{end}.p12")
            cut.write_bytes(content[:end])
            given[f"{store} cut at {end}"] = {
                f"ssl.{store}.type": "PKCS12",
                f"ssl.{store}.location": str(cut),
                f"ssl.{store}.password": PASSWORD,
            }
    assert differences(java, given) == []


def _is_alike(what: str, ours: str, theirs: str) -> bool:
    if FINE in {ours, theirs} or what in OTHER_WORDS:
        return (ours == FINE) == (theirs == FINE)
    return ours.startswith(theirs.split(CAUSE, maxsplit=1)[0])
