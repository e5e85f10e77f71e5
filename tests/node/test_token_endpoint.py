"""Tokens that an endpoint gives, or does not; its answers are written here."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

import pytest
from tests.support.answering_server import Answer, AnsweringServer, answering
from tests.support.oauth_tokens import OAUTH_MODULE, unsecured
from tests.support.ports import free_ports

from kvorum.security.allowed_url import ALLOWED_URLS
from kvorum.security.client_settings import ClientSecuritySettings
from kvorum.security.http_exchange import BODY_BYTES_MAX
from kvorum.security.oauth_bearer_messages import ClientResponse
from kvorum.security.oauth_login import RETRIEVING_HANDLER, OAuthLogin
from kvorum.security.sasl_client import LoginFailedError

SECRET: Final = "open:sesame"
TOKEN: Final = unsecured()
GIVEN: Final = Answer(201, json.dumps({"access_token": TOKEN}).encode())
UNRETRYABLE: Final = (
    "org.apache.kafka.common.KafkaException: org.apache.kafka.common.security.oauthbearer."
    "internals.secured.UnretryableException: java.io.IOException: The response code 401 and error "
    "response {} was encountered reading the token endpoint response; will not attempt further "
    "retries"
)
UNEXPECTED: Final = (
    "org.apache.kafka.common.KafkaException: java.io.IOException: The unexpected response code {} "
    "and error message {} was encountered reading the token endpoint response"
)
NO_TOKEN: Final = (
    "org.apache.kafka.common.security.oauthbearer.JwtRetrieverException: The token endpoint "
    "response did not contain a valid JWT"
)


class Clock:
    """A clock that goes on by pauses alone."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.now_s += seconds


def login_at(url: str, more: Mapping[str, str]) -> OAuthLogin:
    settings = ClientSecuritySettings.from_texts(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH_MODULE} required;",
            "sasl.login.callback.handler.class": RETRIEVING_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.login.retry.backoff.max.ms": "500",
            ALLOWED_URLS: url,
            **more,
        }
    )
    assert isinstance(settings.login, OAuthLogin)
    return settings.login


def retrieved(url: str, clock: Clock, more: Mapping[str, str] | None = None) -> str:
    """Return the token that a login sends; raises LoginFailedError."""
    made = login_at(url, more or {})
    made.renew(lambda: clock.now_s, clock.pause)
    return ClientResponse.decode(made.begin().evaluate(b"")).token


@pytest.mark.parametrize(
    ("more", "form"),
    [
        ({}, b"grant_type=client_credentials"),
        (
            {"sasl.oauthbearer.scope": "read write"},
            b"grant_type=client_credentials&scope=read+write",
        ),
    ],
)
def test_the_endpoint_is_asked_as_by_kafkas_client(more: dict[str, str], form: bytes) -> None:
    with answering(GIVEN) as server:
        assert retrieved(server.url, Clock(), more) == TOKEN
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/place?of=this", form)
    shown = b64encode(f"me:{SECRET}".encode()).decode()
    assert {
        "Accept": "application/json",
        "Authorization": f"Basic {shown}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }.items() <= asked.fields.items()


def test_options_of_the_login_module_are_older_names_of_the_keys() -> None:
    names = (
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
    )
    options = f'{OAUTH_MODULE} required clientId="old" clientSecret="{SECRET}" scope="a";'
    with answering(GIVEN) as server:
        retrieved(server.url, Clock(), {**dict.fromkeys(names, ""), "sasl.jaas.config": options})
    (asked,) = server.asked
    assert asked.body.endswith(b"&scope=a")
    assert asked.fields["Authorization"] == f"Basic {b64encode(f'old:{SECRET}'.encode()).decode()}"


def test_another_answer_after_a_while_has_the_token() -> None:
    clock = Clock()
    id_token = Answer(200, json.dumps({"id_token": TOKEN}).encode())
    with answering(Answer(503, b"oops"), Answer(200), id_token) as server:
        assert retrieved(server.url, clock) == TOKEN
    assert clock.pauses == [0.1, 0.2]


def refusal_by(server: AnsweringServer, clock: Clock) -> str:
    with pytest.raises(LoginFailedError) as raised:
        retrieved(server.url, clock)
    assert SECRET not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Answer(401, b'{"error":"invalid_client","error_description":"no"}'),
            UNRETRYABLE.format('{"invalid_client" - "no"}'),
        ),
        (Answer(401), UNRETRYABLE.format("{}")),
        (Answer(200, b"<html>"), NO_TOKEN),
        (Answer(200, b'{"x": 1}'), NO_TOKEN),
        (Answer(200, b"[]"), NO_TOKEN),
        (Answer(200, b'{"access_token": "a.b"}'), "Malformed JWT provided; expected three"),
    ],
)
def test_an_answer_that_is_final_is_not_asked_for_again(answer: Answer, said: str) -> None:
    clock = Clock()
    with answering(answer) as server:
        assert refusal_by(server, clock).startswith(said)
    assert clock.pauses == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(500, b"oops"), UNEXPECTED.format(500, "{oops}")),
        (
            Answer(503, b'{"errorCode":"e","errorSummary":"s"}'),
            UNEXPECTED.format(503, '{"e" - "s"}'),
        ),
        (Answer(500, b'{"x":1}'), UNEXPECTED.format(500, '{"x":1}')),
        (Answer(302, fields={"Location": "/elsewhere"}), UNEXPECTED.format(302, "{}")),
        (
            Answer(200),
            "org.apache.kafka.common.KafkaException: java.io.IOException: The token endpoint respo",
        ),
        (
            Answer(200, b"x" * (BODY_BYTES_MAX + 1)),
            "org.apache.kafka.common.KafkaException: java.io.IOException: an answer of more than",
        ),
    ],
)
def test_other_answers_are_asked_for_again_until_the_time_is_over(
    answer: Answer, said: str
) -> None:
    clock = Clock()
    with answering(answer) as server:
        assert refusal_by(server, clock).startswith(said)
        assert {asked.path for asked in server.asked} == {"/place?of=this"}
    assert clock.pauses == [0.1, 0.2, 0.2], "no longer than the longest time"


def test_a_refused_connection_ends_in_an_error_that_says_so() -> None:
    (port,) = free_ports(1)
    with pytest.raises(LoginFailedError, match="Connection refused"):
        retrieved(f"http://127.0.0.1:{port}/", Clock())
