"""The issuer of tokens of an embedded cluster, by HTTP."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from tests.support.waiting import PATIENCE_S

from kvorum.node.embedded.client_security.client_access import User
from kvorum.node.embedded.client_security.token_issuer import BODY_BYTES_MAX, TokenIssuer

CLIENT: Final = User("client", "of the client")
GRANT: Final = {"grant_type": "client_credentials"}
IN_THE_FORM: Final = {**GRANT, "client_id": CLIENT.name, "client_secret": CLIENT.password}


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[TokenIssuer]:
    made = TokenIssuer(tmp_path, CLIENT)
    made.start()
    yield made
    made.stop()


def ask(
    issuer: TokenIssuer,
    method: str,
    path: str,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """Return the status and the document that answer a request."""
    connection = HTTPConnection(urlsplit(issuer.url).netloc, timeout=PATIENCE_S)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = None if form is None else urlencode(form)
    connection.request(method, path, body, {**kind, **(headers or {})})
    response = connection.getresponse()
    answered = response.status, json.load(response)
    connection.close()
    return answered


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}"}


def test_a_discovered_token_is_verified_by_the_discovered_keys(issuer: TokenIssuer) -> None:
    _, found = ask(issuer, "GET", "/.well-known/openid-configuration")
    token_path = urlsplit(str(found["token_endpoint"])).path
    status, granted = ask(issuer, "POST", token_path, IN_THE_FORM)
    assert (status, granted["token_type"]) == (200, "Bearer")
    _, keys = ask(issuer, "GET", urlsplit(str(found["jwks_uri"])).path)
    assert "d" not in keys["keys"][0], "the private part"
    claims = jwt.decode(granted["access_token"], KeySet.import_key_set(keys)).claims
    assert claims["exp"] - claims["iat"] == granted["expires_in"]
    assert (claims["iss"], claims["sub"], claims["aud"]) == (found["issuer"], "client", "kafka")


def test_the_secret_may_be_in_a_header(issuer: TokenIssuer) -> None:
    form = {**GRANT, "scope": "orders"}
    shown = basic(CLIENT.name, CLIENT.password)
    status, granted = ask(issuer, "POST", "/token", form, shown)
    assert (status, granted["scope"]) == (200, "orders")


@pytest.mark.parametrize(
    ("form", "headers", "refusal"),
    [
        ({**IN_THE_FORM, "client_secret": "guessed"}, {}, (401, "invalid_client")),
        ({**IN_THE_FORM, "client_id": "another"}, {}, (401, "invalid_client")),
        (GRANT, {}, (401, "invalid_client")),
        (GRANT, basic(CLIENT.name, "guessed"), (401, "invalid_client")),
        (GRANT, {"Authorization": "Basic *"}, (401, "invalid_client")),
        ({**IN_THE_FORM, "grant_type": "password"}, {}, (400, "unsupported_grant_type")),
        ({}, {}, (400, "unsupported_grant_type")),
        ({**GRANT, "x": "y" * BODY_BYTES_MAX}, {}, (404, "not_found")),
    ],
    ids=["secret", "id", "neither", "basic", "no base64", "grant", "empty", "too large"],
)
def test_no_token_is_given_to_others(
    issuer: TokenIssuer, form: Mapping[str, str], headers: Mapping[str, str], refusal: object
) -> None:
    status, answer = ask(issuer, "POST", "/token", form, headers)
    assert (status, answer["error"]) == refusal
    assert "access_token" not in answer


def test_a_later_issuer_has_the_same_name_and_keys(tmp_path: Path) -> None:
    first = TokenIssuer(tmp_path, CLIENT)
    first.stop()
    again = TokenIssuer(tmp_path, CLIENT)
    try:
        assert again.url == first.url
        keys = KeySet.import_key_set(json.loads(again.key_set_file.read_text()))
        assert jwt.decode(first.token(), keys).claims["sub"] == CLIENT.name
    finally:
        again.stop()
