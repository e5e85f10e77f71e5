"""SCRAM credentials given when formatting."""

import base64
import random

import pytest

from kvorum.node.format import FormatError
from kvorum.node.format.scram import parse_scram_credential


def parse(text: str, *, seed: int = 1) -> tuple[str, int, bytes, bytes, bytes, int]:
    record = parse_scram_credential(text, random_source=random.Random(seed))
    return (
        record.name,
        record.mechanism,
        record.salt,
        record.stored_key,
        record.server_key,
        record.iterations,
    )


def test_the_example_of_rfc_7677() -> None:
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    text = f"SCRAM-SHA-256=[name=user,password=pencil,salt={salt},iterations=4096]"
    assert parse(text) == (
        "user",
        1,
        base64.b64decode(salt),
        base64.b64decode("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="),
        base64.b64decode("wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="),
        4096,
    )


def test_the_salt_is_drawn_where_none_is_given() -> None:
    text = "SCRAM-SHA-512=[name=a,password=p]"
    first, again, other = parse(text), parse(text), parse(text, seed=2)
    assert first == again
    assert first[2] != other[2]
    assert first[1] == 2
    assert int(first[2].decode(), 36) < 1 << 130


def test_a_salted_password_is_taken_as_it_is() -> None:
    plain = parse('SCRAM-SHA-256=[name=a,salt="YQ",password=p,iterations=8192]')
    salted = parse('SCRAM-SHA-256=[name=a,salt="YQ==",saltedpassword="YCE=",iterations=8192]')
    assert plain[2] == salted[2] == b"a"
    assert plain[3] != salted[3]
    assert salted[5] == 8192


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("password=p", "You must supply 'name' to add-scram"),
        ("name=a", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("name=a,saltedpassword=YCE=", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        ("name=a,password=p,salt=%", "Failed to decode given salt: %"),
        (
            "name=a,password=p,iterations=1",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM_SHA_256",
        ),
        ("name=a,password=p,x=1", "Unknown SCRAM configurations: x"),
    ],
)
def test_what_is_missing_or_odd_is_named(setting: str, complaint: str) -> None:
    with pytest.raises(FormatError) as refusal:
        parse(f"SCRAM-SHA-256=[{setting}]")
    assert str(refusal.value) == complaint
