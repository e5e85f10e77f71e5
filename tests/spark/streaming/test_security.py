"""The options of a secured stream, and the client's side of SASL."""

from collections.abc import Mapping

import pytest

from kvorum.quorum_client.errors import ClientOptionError, QuorumError
from kvorum.quorum_client.security import (
    MECHANISMS,
    Credentials,
    SaslError,
    Security,
    Tls,
    security_options,
)
from kvorum.spark.errors import OptionError
from kvorum.spark.streaming.options import directory_options, quorum_options, stream_options

PASSWORD = "open sesame"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sasl(jaas: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": jaas,
    }


def test_without_options_a_listener_is_plaintext() -> None:
    assert security_options({"controllers": "a:1"}) == Security()


def test_names_and_protocols_count_in_any_case() -> None:
    options = {"Kafka.Security.Protocol": "ssl", "kafka.ssl.TRUSTSTORE.location": "ca.pem"}
    assert security_options(options) == Security(Tls(trusted_file="ca.pem"))


@pytest.mark.parametrize(
    ("written", "user", "password"),
    [
        ('username="me" password="open sesame"', "me", PASSWORD),
        ("password='open sesame' username=me", "me", PASSWORD),
        (r'username="m\"e" password="a\\b" serviceName="x"', 'm"e', "a\\b"),
    ],
)
def test_the_login_is_written_as_for_kafka(written: str, user: str, password: str) -> None:
    found = security_options(sasl(f"{PLAIN} required\n {written} ;"))
    assert found.credentials == Credentials("PLAIN", user, password)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.security.protocol": "TLS"}, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "does not go with 'kafka.security.protocol' PLAINTEXT"),
        ({"kafka.ssl.key.password": PASSWORD}, "'kafka.ssl.key.password' does not go with"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "JKS"}, "only PEM"),
        (sasl(f'{PLAIN} required password="{PASSWORD}";'), "is not org.apache"),
        (sasl(f'{PLAIN} required username="a" password="{PASSWORD}"'), "is not org.apache"),
        (sasl(f'{PLAIN} required username="a" password="{PASSWORD};'), "is not org.apache"),
        (sasl(f'{SCRAM} required username="a" password="{PASSWORD}";'), "PlainLoginModule"),
        (sasl(f'{PLAIN} required username="a" password="{PASSWORD}";', "GSSAPI"), "PLAIN, SCRAM"),
    ],
)
def test_wrong_options_are_named_without_what_is_secret(
    options: Mapping[str, str], said: str
) -> None:
    with pytest.raises(ClientOptionError) as raised:
        quorum_options({"controllers": "a:1", **options})
    assert said in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_what_is_secret_is_in_no_text() -> None:
    options = {
        "controllers": "a:1",
        **sasl(f'{PLAIN} required username="me" password="{PASSWORD}";'),
        "kafka.ssl.key.password": PASSWORD,
    }
    found = quorum_options(options)
    assert found.security.credentials == Credentials("PLAIN", "me", PASSWORD)
    assert PASSWORD not in repr(found) + str(found.security)
    assert stream_options(options)


def test_directories_have_no_security() -> None:
    with pytest.raises(OptionError, match=r"'kafka.security.protocol' goes together"):
        directory_options({"path": "logs", "kafka.security.protocol": "SSL"})


def test_a_file_of_certificates_that_is_missing_is_named() -> None:
    with pytest.raises(QuorumError, match=r"truststore.location': /no/ca.pem: No such file"):
        Tls(trusted_file="/no/ca.pem").context()


def test_the_example_of_rfc_7677() -> None:
    nonce = "rOprNGfwEbeRWgbNEkqO"
    exchange = MECHANISMS["SCRAM-SHA-256"](Credentials("SCRAM-SHA-256", "user", "pencil"), nonce)
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    both = nonce + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert exchange.send(f"r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()) == (
        f"c=biws,r={both},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([b"r=other,s=AAAA,i=4096"], "nonce"),
        ([b"r=mine,s=AAAA,i=4096"], "nonce"),
        ([b"r=mine1,s=AAAA,i=1"], "'1' iterations"),
        ([b"r=mine1,s=AAAA,i=99999999"], "'99999999' iterations"),
        ([b"r=mine1,i=4096"], "field 's'"),
        ([b"\xff"], "no text"),
        ([b"r=mine1,s=AAAA,i=4096", b"v=AAAA"], "does not know the password"),
        ([b"r=mine1,s=AAAA,i=4096", b"e=other-error"], "field 'v'"),
    ],
)
def test_a_server_that_does_not_keep_to_scram_is_refused(answers: list[bytes], said: str) -> None:
    exchange = MECHANISMS["SCRAM-SHA-512"](Credentials("SCRAM-SHA-512", "a", PASSWORD), "mine")
    next(exchange)
    *before, last = answers
    for answer in before:
        exchange.send(answer)
    with pytest.raises(SaslError, match=said):
        exchange.send(last)


def test_names_with_separators_are_escaped() -> None:
    exchange = MECHANISMS["SCRAM-SHA-256"](Credentials("SCRAM-SHA-256", "a=b,c", PASSWORD), "n")
    assert next(exchange) == b"n,,n=a=3Db=2Cc,r=n"
