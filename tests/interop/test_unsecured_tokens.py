"""Unsecured tokens of OAUTHBEARER, whole and damaged, validated by Kafka and by us."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

import pytest
from tests.interop.damaged_bytes import damaged
from tests.support.kafka.java import Java

from kvorum.security.oauth_bearer_server import InvalidTokenError
from kvorum.security.sasl_server import SaslBrokenError
from kvorum.security.unsecured_token import UnsecuredTokenValidator, unsecured_token_settings

NOW_MS: Final = 1_700_000_000_000
REFUSED: Final = "?"
FAILED: Final = "!"
CHANGES: Final = b'\x00\t\n .-_=+/09eE"{}[],:\\aZ\x7f\xc3\xff'
HEADER: Final = b'{"alg":"none"}'
HEADERS: Final = (HEADER, b'{"typ":"JWT","alg":"none"}', b'{"alg":"HS256"}', b"{}", b"[]", b"true")
CLAIMS: Final = (
    b'{"sub":"alice","exp":1700000100}',
    b'{"sub":"alice","exp":1700000100.5,"iat":1699999999,"scope":"a b"}',
    b'{"name":"bob","exp":1.7000001e9,"roles":["a","b "," "]}',
    b'{"sub":"\\u00e9","exp":1700000100,"scope":["a",null,{"x":1},true,1.5]}',
    b'{"sub":7,"exp":"1700000100"}',
    b'{"sub":" ","exp":1700000100}',
    b'{"sub":"late","exp":1699999990,"iat":1699999980}',
    b'{"sub":"early","exp":1700000100,"iat":1700000020}',
    b'{"sub":"never","exp":99999999999999999999}',
)
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "defaults": {},
    "other claims": {"PrincipalClaimName": "name", "ScopeClaimName": "roles"},
    "a required scope": {"RequiredScope": " a  b", "AllowableClockSkewMs": "15000"},
}


def token_of(header: bytes, claims: bytes, signature: str = "") -> str:
    parts = (urlsafe_b64encode(part).rstrip(b"=").decode() for part in (header, claims))
    return ".".join((*parts, signature))


def tokens(random: Random) -> Iterator[str]:
    """Yield tokens whose parts, and whose whole text, are damaged."""
    for header in HEADERS:
        yield from (token_of(part, CLAIMS[0]) for part in damaged(header, CHANGES, random))
    for claims in CLAIMS:
        yield from (token_of(HEADER, part) for part in damaged(claims, CHANGES, random))
        whole = token_of(HEADER, claims, random.choice(("", "", "abc"))).encode()
        for text in damaged(whole, CHANGES, random):
            yield text.decode(errors="replace")


def answer_of_ours(validator: UnsecuredTokenValidator, token: str) -> str:
    try:
        read = validator(token)
    except InvalidTokenError as error:
        # Kafka writes a list.
        scope = f"[{', '.join(error.required_scope)}]" if error.required_scope else ""
        return f"{REFUSED}{scope.encode().hex()}"
    except SaslBrokenError:
        return FAILED
    return f"{read.user.encode().hex()} {read.expires_at_ms}"


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_tokens_are_validated_as_by_kafka(java: Java, options: Mapping[str, str]) -> None:
    given = {f"unsecuredValidator{name}": value for name, value in options.items()}
    validator = UnsecuredTokenValidator(unsecured_token_settings(given), lambda: NOW_MS)
    # No message of OAUTHBEARER has an empty token.
    asked = [token for token in tokens(Random(0)) if token]
    names = ("PrincipalClaimName", "ScopeClaimName", "RequiredScope", "AllowableClockSkewMs")
    answers = java.answers(
        "UnsecuredTokens",
        str(NOW_MS),
        *(options.get(name, "") for name in names),
        asked=[token.encode().hex() for token in asked],
    )
    differing = [
        (token, theirs, ours)
        for token, theirs in zip(asked, answers, strict=True)
        if (ours := answer_of_ours(validator, token)) != theirs
    ]
    assert differing == []
