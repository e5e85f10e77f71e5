"""SCRAM on the client's side: the vectors, and the servers that Kafka's client refuses."""

from typing import Final

import pytest

from kvorum.metadata.credentials_image import ScramMechanism
from kvorum.security.sasl_client import SaslServerError
from kvorum.security.scram_client import ITERATIONS_MAX, ScramClient

SHA_256: Final = ScramMechanism.SCRAM_SHA_256
SHA_512: Final = ScramMechanism.SCRAM_SHA_512
NONCE: Final = "rOprNGfwEbeRWgbNEkqO"
BOTH: Final = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
ANSWER: Final = f"r={BOTH},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
# Of RFC 7677, and of Kafka's own classes with the same inputs.
VECTORS: Final = {
    SHA_256: (
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
    SHA_512: (
        "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
        "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
    ),
}


def client(mechanism: ScramMechanism = SHA_256, user: str = "user") -> ScramClient:
    return ScramClient(mechanism, user, "pencil", NONCE)


def begun(mechanism: ScramMechanism = SHA_256) -> ScramClient:
    one = client(mechanism)
    assert one.evaluate(b"") == f"n,,n=user,r={NONCE}".encode()
    return one


@pytest.mark.parametrize("mechanism", VECTORS)
def test_the_exchange_is_that_of_the_vectors(mechanism: ScramMechanism) -> None:
    proof, signature = VECTORS[mechanism]
    one = begun(mechanism)
    assert one.evaluate(ANSWER.encode()) == f"c=biws,r={BOTH},p={proof}".encode()
    assert not one.is_complete
    one.evaluate(f"v={signature}".encode())
    assert one.is_complete


def test_names_with_separators_are_escaped() -> None:
    assert client(user="a=b,c").evaluate(b"") == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


def test_extensions_of_the_server_are_not_signed() -> None:
    proof, _ = VECTORS[SHA_256]
    extended = f"m=x,{ANSWER},a=1".encode()
    assert begun().evaluate(extended).endswith(f",p={proof}".encode())


def test_zeros_before_the_iterations_do_not_count() -> None:
    proof, _ = VECTORS[SHA_256]
    answer = ANSWER.replace("i=4096", f"i={'0' * 7}4096").encode()
    assert begun().evaluate(answer).endswith(f",p={proof}".encode())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (f"r=other{BOTH},s=AAAA,i=4096", "does not start with client nonce"),
        (f"r={BOTH},s=AAAA,i=4095", "Requested iterations 4095 is less than the minimum 4096 for"),
        (f"r={BOTH},s=AAAA,i={ITERATIONS_MAX + 1}", "iterations 1000001 is greater than"),
        (f"r={BOTH},s=AAAA,i=0", "invalid iterations 0$"),
        (f"r={BOTH},s=AAAA,i=2147483648", "invalid iterations$"),
        (f"r={BOTH},s=AAAA,i={'9' * 5_000}", "invalid iterations"),
        (f"r={BOTH},i=4096", "Invalid SCRAM server first message format: r="),
        (f"r={BOTH},s=AAA,i=4096", "Invalid SCRAM server first message format: r="),
        ("\udcff", "Invalid SCRAM server first message format: \ufffd"),
    ],
)
def test_a_first_answer_of_another_form_or_exchange_is_refused(answer: str, said: str) -> None:
    with pytest.raises(SaslServerError, match=said):
        begun().evaluate(answer.encode(errors="surrogateescape"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("v=AAAA", "Invalid server signature in server final message"),
        (f"v={VECTORS[SHA_256][0]}", "Invalid server signature in server final message"),
        ("v=", "Invalid server signature in server final message"),
        ("e=other-error", "using SCRAM_SHA_256 failed with error: other-error"),
        ("", "Invalid SCRAM server final message format: "),
    ],
)
def test_a_server_that_does_not_know_the_password_is_refused(answer: str, said: str) -> None:
    one = begun()
    one.evaluate(ANSWER.encode())
    with pytest.raises(SaslServerError, match=said):
        one.evaluate(answer.encode())
    assert not one.is_complete


def test_a_server_that_speaks_first_is_refused() -> None:
    with pytest.raises(SaslServerError, match="Expected empty challenge"):
        client().evaluate(b"n")
