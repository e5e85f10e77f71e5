"""Requests about delegation tokens, and logins with them, at a real node and at ours."""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.interop.clients.authentications import LET_IN, Login, by_tool
from tests.interop.listener_pairs import Sides, running_sides
from tests.interop.quorum_tools import run_ours
from tests.support.kafka.java import Java, ToolRunner
from tests.support.raw_client import RawClient
from tests.support.sasl_clients import SCRAM_CONFIG, log_in, plain_config, send_token, shake_hands
from tests.support.scram_client import ScramClient
from tests.support.tls_nodes import Keys, Listeners
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kvorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateResponse

pytestmark = pytest.mark.slow

PASSWORDS: Final = {"alice": "secret of alice", "bob": "secret of bob"}
SHA_256: Final = "SCRAM-SHA-256"
SHA_512: Final = "SCRAM-SHA-512"
BY_TOKEN: Final = ",tokenauth=true"
SHORT_MS: Final = 1_500
EXPIRY_MS: Final = 86_400_000
ROUNDED_MS: Final = 600_000
"""The time that a test may take, which is not told apart."""
CREDENTIALS: Final = (
    "--add-scram",
    f"SCRAM-SHA-256=[name=alice,password={PASSWORDS['alice']}]",
)
Outcome = object


class Token(NamedTuple):
    """A delegation token: its id and its secret."""

    token_id: str
    hmac: bytes

    def client(self, mechanism: str = SHA_256, more: str = BY_TOKEN) -> ScramClient:
        return ScramClient(mechanism, self.token_id, self.password, more)

    @property
    def password(self) -> str:
        return b64encode(self.hmac).decode()


def settings(listeners: Listeners) -> dict[str, str]:
    by_listener = {
        "sasl.enabled.mechanisms": f"PLAIN,{SHA_256},{SHA_512}",
        "plain.sasl.jaas.config": plain_config(**PASSWORDS),
        "scram-sha-256.sasl.jaas.config": SCRAM_CONFIG,
        "scram-sha-512.sasl.jaas.config": SCRAM_CONFIG,
    }
    return {
        **listeners.settings(),
        **{f"listener.name.open.{key}": value for key, value in by_listener.items()},
        "delegation.token.secret.key": "secret of the nodes",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
    }


@pytest.fixture(scope="module")
def sides(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    protocols = {"OPEN": "SASL_PLAINTEXT"}
    found = Sides(Listeners(("OPEN",), protocols), Listeners(("OPEN",), protocols))
    folder = tmp_path_factory.mktemp("nodes")
    with running_sides(
        found, folder, settings, java=java, tools=kafka_tools, format_options=CREDENTIALS
    ):
        yield found


def connected(port: int) -> RawClient:
    return RawClient(f"127.0.0.1:{port}")


def create(client: RawClient, lifetime_ms: int = -1) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(max_lifetime_ms=lifetime_ms)
    return client.ask(request, CreateDelegationTokenResponse, 3)


def new_token(port: int, user: str = "alice", lifetime_ms: int = -1) -> Token:
    """Return a new token once a client of its own can log in with it."""
    with connected(port) as client:
        assert log_in(client, user, PASSWORDS[user]).error_code == ErrorCode.NONE
        made = create(client, lifetime_ms)
    assert made.error_code == ErrorCode.NONE
    token = Token(made.token_id, bytes(made.hmac))
    wait_for(lambda: is_let_in(port, token.client()) or None, "the token is known")
    return token


def is_let_in(port: int, login: ScramClient) -> bool:
    with connected(port) as client:
        return log_in_by_scram(client, login).error_code == ErrorCode.NONE


def log_in_by_scram(client: RawClient, login: ScramClient) -> SaslAuthenticateResponse:
    """Return the last answer: that to the first message where it is refused."""
    shake_hands(client, login.mechanism)
    answer = send_token(client, login.first)
    if answer.error_code != ErrorCode.NONE:
        return answer
    return send_token(client, login.final(bytes(answer.auth_bytes)))


def outcome(client: RawClient, login: ScramClient) -> Outcome:
    """Return the code, the text, and the lifetime in tens of minutes."""
    answer = log_in_by_scram(client, login)
    lifetime = answer.session_lifetime_ms / ROUNDED_MS
    return answer.error_code, answer.error_message, round(lifetime)


def topic_code(client: RawClient) -> int:
    """Return the code of a topic that is not there, for those who may know it."""
    names = [MetadataRequest.MetadataRequestTopic(name="nowhere")]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    return client.ask(request, MetadataResponse, 9).topics[0].error_code


def codes_about_tokens(client: RawClient, hmac: bytes = b"") -> list[int]:
    """Return the codes of each request about tokens."""
    renewed = client.ask(RenewDelegationTokenRequest(hmac), RenewDelegationTokenResponse, 2)
    expiring = ExpireDelegationTokenRequest(hmac, EXPIRY_MS)
    expired = client.ask(expiring, ExpireDelegationTokenResponse, 2)
    described = client.ask(DescribeDelegationTokenRequest(), DescribeDelegationTokenResponse, 3)
    codes = [each.error_code for each in (create(client), renewed, expired, described)]
    return [*codes, len(described.tokens) > 0]


def in_plain_text(ports: dict[str, int]) -> Outcome:
    token = new_token(ports["OPEN"])
    with connected(ports["PLAINTEXT"]) as client:
        return codes_about_tokens(client, token.hmac)


def by_password(ports: dict[str, int]) -> Outcome:
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client:
        log_in(client, "alice", PASSWORDS["alice"])
        return codes_about_tokens(client, token.hmac)


def by_another_user(ports: dict[str, int]) -> Outcome:
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client:
        log_in(client, "bob", PASSWORDS["bob"])
        return codes_about_tokens(client, token.hmac)[1:3]


def by_token(ports: dict[str, int], mechanism: str) -> Outcome:
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client:
        found = outcome(client, token.client(mechanism))
        return found, topic_code(client), codes_about_tokens(client, token.hmac)


def by_token_of_another_user(ports: dict[str, int]) -> Outcome:
    token = new_token(ports["OPEN"], "bob")
    with connected(ports["OPEN"]) as client:
        return outcome(client, token.client()), topic_code(client)


def by_short_token(ports: dict[str, int]) -> Outcome:
    token = new_token(ports["OPEN"], lifetime_ms=2 * ROUNDED_MS)
    with connected(ports["OPEN"]) as client:
        return outcome(client, token.client())


def refused(ports: dict[str, int], change: Callable[[Token], ScramClient]) -> Outcome:
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client:
        return outcome(client, change(token)), client.is_closed()


def expired(ports: dict[str, int]) -> Outcome:
    """Let a token expire under a connection, and come with it once more."""
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client, connected(ports["OPEN"]) as other:
        log_in(client, "alice", PASSWORDS["alice"])
        request = ExpireDelegationTokenRequest(token.hmac, SHORT_MS)
        end_s = time.monotonic() + SHORT_MS / 1000
        code = client.ask(request, ExpireDelegationTokenResponse, 2).error_code
        wait_for(lambda: lifetime_of(ports, token) <= SHORT_MS or None, "its end is known")
        before = log_in_by_scram(other, token.client()).session_lifetime_ms > 0
        code_before = topic_code(other)
        wait_for(lambda: time.monotonic() > end_s + 0.1 or None, "it has expired")
        other.send(MetadataRequest(topics=[]), 9)
        is_closed = other.is_closed()
    return code, before, code_before, is_closed, after_the_end(ports, token)


def lifetime_of(ports: dict[str, int], token: Token) -> int:
    with connected(ports["OPEN"]) as client:
        return log_in_by_scram(client, token.client()).session_lifetime_ms


def after_the_end(ports: dict[str, int], token: Token) -> Outcome:
    """Log in with a token that has expired and is not removed yet."""
    with connected(ports["OPEN"]) as client:
        found = outcome(client, token.client())
        client.send(MetadataRequest(topics=[]), 9)
        return found, client.is_closed()


def removed(ports: dict[str, int]) -> Outcome:
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client, connected(ports["OPEN"]) as other:
        log_in_by_scram(other, token.client())
        log_in(client, "alice", PASSWORDS["alice"])
        client.ask(ExpireDelegationTokenRequest(token.hmac, -1), ExpireDelegationTokenResponse, 2)
        wait_for(lambda: not is_let_in(ports["OPEN"], token.client()) or None, "it is gone")
        is_served = topic_code(other)
    with connected(ports["OPEN"]) as client:
        return is_served, outcome(client, token.client())


def again(ports: dict[str, int], second: Callable[[RawClient, int], object]) -> Outcome:
    """Authenticate by a token, and then in another way; tell who may create tokens."""
    token = new_token(ports["OPEN"])
    with connected(ports["OPEN"]) as client:
        first = outcome(client, token.client()), create(client).error_code
        second(client, ports["OPEN"])
        return first, create(client).error_code, topic_code(client)


def with_another_token(client: RawClient, port: int) -> None:
    outcome(client, new_token(port).client())


def with_the_password(client: RawClient, port: int) -> None:
    del port
    found = outcome(client, ScramClient(SHA_256, "alice", PASSWORDS["alice"]))
    # Only the listener could end this session, and it does not.
    assert found == (ErrorCode.NONE, "", 0)


def to_another_user(ports: dict[str, int]) -> Outcome:
    alices = new_token(ports["OPEN"])
    bobs = new_token(ports["OPEN"], "bob")
    with connected(ports["OPEN"]) as client:
        log_in_by_scram(client, alices.client())
        return outcome(client, bobs.client()), client.is_closed()


SCRIPTS: Final[dict[str, Callable[[dict[str, int]], Outcome]]] = {
    "in plain text": in_plain_text,
    "by password": by_password,
    "by another user": by_another_user,
    "by token, SHA-256": partial(by_token, mechanism=SHA_256),
    "by token, SHA-512": partial(by_token, mechanism=SHA_512),
    "by token of another user": by_token_of_another_user,
    "by short token": by_short_token,
    "no extension": partial(refused, change=lambda token: token.client(more="")),
    "wrong secret": partial(
        refused, change=lambda token: ScramClient(SHA_256, token.token_id, "guess", BY_TOKEN)
    ),
    "unknown token": partial(
        refused, change=lambda token: ScramClient(SHA_256, "x", token.password, BY_TOKEN)
    ),
    "owner as authorization id": partial(
        refused,
        change=lambda token: ScramClient(
            SHA_256, token.token_id, token.password, BY_TOKEN, "alice"
        ),
    ),
    "user with a password": partial(
        refused,
        change=lambda _: ScramClient(SHA_256, "alice", PASSWORDS["alice"], BY_TOKEN),
    ),
    "expired": expired,
    "removed": removed,
    "again with another token": partial(again, second=with_another_token),
    "again with the password": partial(again, second=with_the_password),
    "again as another user": to_another_user,
}


@pytest.mark.parametrize("what", SCRIPTS)
def test_tokens_are_handled_as_by_kafka(sides: Sides, what: str) -> None:
    theirs, ours = (SCRIPTS[what](dict(each.ports)) for each in sides)
    assert ours == theirs


@pytest.mark.parametrize("password", ["", "guess"])
def test_tools_of_both_kinds_come_with_a_token_as_to_kafka(
    sides: Sides, kafka_tools: ToolRunner, tmp_path: Path, password: str
) -> None:
    keys = Keys(tmp_path)
    outcomes: list[str] = []
    for listeners in sides:
        port = listeners.ports["OPEN"]
        token = new_token(port)
        secret = password or token.password
        login = Login(
            "SASL_PLAINTEXT", SHA_256, token.token_id, secret, keys.trusted, is_by_token=True
        )
        outcomes.append(by_tool(port, login, kafka_tools, tmp_path))
        address = ("--bootstrap-server", f"127.0.0.1:{port}")
        file = str(tmp_path / "client.properties")
        ours = run_ours(["cluster-id", *address, "--command-config", file], "kafka-cluster")
        assert (ours.exit_code == 0) == (outcomes[-1] == LET_IN)
        assert outcomes[-1] == LET_IN or outcomes[-1].partition(" : ")[2] in ours.stderr
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0] == LET_IN) == (not password)
