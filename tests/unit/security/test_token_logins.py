"""Logins with a delegation token, by SCRAM with credentials that the node makes itself."""

from base64 import b64encode
from hashlib import sha512
from hmac import digest
from itertools import count
from typing import Final

import pytest
from immutables import Map
from tests.support.scram_client import ScramClient

from kvorum.metadata.credentials_image import DelegationToken, DelegationTokensImage, ScramMechanism
from kvorum.metadata.delegation_tokens import TokenSecrets, TokenSettings
from kvorum.metadata.image import MetadataImage
from kvorum.security.sasl_mechanisms import LoginSource
from kvorum.security.sasl_server import AuthenticatedUser, SaslAuthenticationError, SaslError
from kvorum.security.token_credentials import TokenCredentials

TOKEN_ID: Final = "oN9SFSJ7RrCU1ClyOZBMgA"
KEY: Final = b"secret of the nodes"
SECRET: Final = b64encode(digest(KEY, TOKEN_ID.encode(), sha512)).decode()
EXPIRES_AT_MS: Final = 5_000
BY_TOKEN: Final = ",tokenauth=true"
TOKEN: Final = DelegationToken(
    owner="Group:alice",
    requester="User:bob",
    renewers=(),
    issue_timestamp_ms=1_000,
    max_timestamp_ms=9_000,
    expiration_timestamp_ms=EXPIRES_AT_MS,
)
ALICE: Final = AuthenticatedUser("alice", EXPIRES_AT_MS, is_by_token=True)


def source(
    *, key: bytes | None = KEY, tokens: dict[str, DelegationToken] | None = None
) -> LoginSource:
    known = {TOKEN_ID: TOKEN} if tokens is None else tokens
    image = MetadataImage(delegation_tokens=DelegationTokensImage(Map(known)))
    salts = count(1)
    credentials = TokenCredentials(
        TokenSecrets(TokenSettings(key)), lambda: next(salts).to_bytes(16, "big")
    )
    return LoginSource(lambda: image, credentials, lambda: "server", lambda: 0, print, print)


def log_in(logins: LoginSource, client: ScramClient) -> AuthenticatedUser | None:
    server = logins.begin_scram(ScramMechanism[client.mechanism.replace("-", "_")])
    server.evaluate(client.final(server.evaluate(client.first)))
    return server.user


def client(
    mechanism: str = "SCRAM-SHA-256",
    password: str = SECRET,
    more: str = BY_TOKEN,
    authorization_id: str = "",
) -> ScramClient:
    return ScramClient(mechanism, TOKEN_ID, password, more, authorization_id)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("more", [BY_TOKEN, ",tokenauth=TRUE"])
def test_the_secret_of_a_token_lets_in_its_owner_until_it_expires(
    mechanism: str, more: str
) -> None:
    assert log_in(source(), client(mechanism, more=more)) == ALICE


def test_a_token_may_be_named_as_the_user_and_its_owner_may_not() -> None:
    assert log_in(source(), client(authorization_id=TOKEN_ID)) == ALICE
    with pytest.raises(SaslAuthenticationError, match="different from username"):
        log_in(source(), client(authorization_id="alice"))


@pytest.mark.parametrize(
    ("logins", "refused"),
    [
        (source(), client(more="")),
        (source(), client(more=",tokenauth=yes")),
        (source(), client(password="guess")),
        (source(tokens={}), client()),
        (source(key=None), client()),
    ],
    ids=["no extension", "another value", "wrong secret", "no token", "tokens are disabled"],
)
def test_other_logins_are_refused_without_a_reason(
    logins: LoginSource, refused: ScramClient
) -> None:
    with pytest.raises(SaslError) as raised:
        log_in(logins, refused)
    assert not isinstance(raised.value, SaslAuthenticationError)


def test_each_mechanism_has_a_salt_of_its_own_that_stays() -> None:
    logins = source()

    def answer(mechanism: ScramMechanism) -> bytes:
        return logins.begin_scram(mechanism).evaluate(client().first)

    answers = [answer(mechanism) for mechanism in list(ScramMechanism)[1:] * 2]
    assert answers[:2] == answers[2:]
    assert answers[0] != answers[1]


def test_what_is_known_of_tokens_that_are_gone_is_forgotten() -> None:
    image = DelegationTokensImage(Map({str(number): TOKEN for number in range(1_002)}))
    salts: list[bytes] = []

    def new_salt() -> bytes:
        salts.append(b"salt")
        return salts[-1]

    logins = TokenCredentials(TokenSecrets(TokenSettings(KEY)), new_salt)
    few = DelegationTokensImage(Map({"0": TOKEN}))
    for token_id in image.tokens:
        assert logins.find(image, ScramMechanism.SCRAM_SHA_256, token_id)
    logins.find(few, ScramMechanism.SCRAM_SHA_256, "0")
    assert len(salts) == len(image.tokens) + 1
