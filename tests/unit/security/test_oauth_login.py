"""The client's side of OAUTHBEARER: where tokens come from, when they are renewed, what is sent."""

import json
import pickle
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.support.oauth_tokens import OAUTH_MODULE, unsecured

from kvorum.security.allowed_url import ALLOWED_URLS
from kvorum.security.client_login import ClientLogin
from kvorum.security.client_settings import ClientSecuritySettings
from kvorum.security.client_token import ClientToken
from kvorum.security.errors import InvalidOAuthSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.oauth_bearer_messages import ClientResponse
from kvorum.security.oauth_login import RETRIEVING_HANDLER, OAuthLogin, renewal_ms
from kvorum.security.oauth_login_settings import RenewalSettings
from kvorum.security.sasl_client import LoginFailedError

NOW_S: Final = 1_000_000.5
HOUR_MS: Final = 3_600_000
URL: Final = "https://issuer.example/token"
SECRET: Final = "open sesame"
ALICE: Final = 'unsecuredLoginStringClaim_sub="alice"'
RENEWAL: Final = RenewalSettings(
    window_factor=0.8, window_jitter=0.05, period_s_min=60, buffer_s=300
)
RETRIEVER_FAILED: Final = (
    "The class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever defined in the "
    "sasl.oauthbearer.jwt.retriever.class configuration encountered an error on configure(): "
)


def login(options: str = ALICE, settings: Mapping[str, str] | None = None) -> ClientLogin:
    """Return the login of a client with options of the login module, and with other settings."""
    read = ClientSecuritySettings.from_texts(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH_MODULE} required {options};",
            **(settings or {}),
        }
    )
    made = read.make().login
    assert made is not None
    return made


def retrieving(url: str | None = URL, **more: str) -> dict[str, str]:
    """Return the settings by which tokens come from an allowed URL."""
    named = {} if url is None else {"sasl.oauthbearer.token.endpoint.url": url}
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "sasl.login.callback.handler.class": RETRIEVING_HANDLER,
        ALLOWED_URLS: f"https://other.example, {url}",
        **named,
        **keys,
    }


def pause_never(seconds: float) -> None:
    raise AssertionError(f"a pause of {seconds} s")


def token_of(made: ClientLogin, *, now_s: float = NOW_S) -> str:
    made.prepare(lambda: now_s, pause_never)
    return ClientResponse.decode(made.begin().evaluate(b"")).token


def claims_of(token: str) -> dict[str, object]:
    part = token.split(".")[1]
    claims: dict[str, object] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def test_an_unsecured_token_has_the_claims_of_the_options() -> None:
    options = (
        f"{ALICE} unsecuredLoginNumberClaim_n='5' unsecuredLoginListClaim_scope='|a|b' "
        "unsecuredLoginLifetimeSeconds='60' unsecuredValidatorPrincipalClaimName='x'"
    )
    assert claims_of(token_of(login(options))) == {
        "sub": "alice",
        "n": 5.0,
        "scope": ["a", "b"],
        "iat": NOW_S,
        "exp": NOW_S + 60,
    }


def test_the_user_may_be_in_another_claim() -> None:
    options = "unsecuredLoginPrincipalClaimName=' name ' unsecuredLoginStringClaim_name='alice'"
    assert claims_of(token_of(login(options)))["name"] == "alice"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "No principal name in JWT claim: sub"),
        ("unsecuredLoginStringClaim_sub=' '", "No principal name in JWT claim: sub"),
        ("unsecuredLoginNumberClaim_sub='5'", "No principal name in JWT claim: sub"),
        (f"{ALICE} unsecuredLoginLifetimeSeconds='x'", "not a number of seconds: x"),
        (f"{ALICE} unsecuredLoginNumberClaim_iat='5'", "Cannot explicitly set the 'iat' claim"),
        (f"{ALICE} unsecuredLoginNumberClaim_n='five'", "NumberClaim_n is not a number: five"),
        (f"{ALICE} unsecuredLoginExtension_t1='a'", "Extension name t1 is invalid"),
        (f"{ALICE} unsecuredLoginExtension_auth='a'", "Extension name auth is invalid"),
        (f"{ALICE} unsecuredLoginExtension_t='\u00e9'", "Extension value for extension t is"),
    ],
)
def test_options_that_no_token_can_be_written_with_are_refused(options: str, said: str) -> None:
    with pytest.raises(InvalidOAuthSettingsError, match=said):
        login(options)


def test_extensions_of_the_options_are_sent() -> None:
    made = login(f"{ALICE} unsecuredLoginExtension_trace='1 2'")
    made.prepare(lambda: NOW_S, pause_never)
    message = made.begin().evaluate(b"")
    assert message.startswith(b"n,,\x01auth=Bearer ")
    assert message.endswith(b"\x01trace=1 2\x01\x01")


def test_a_refused_token_is_given_up_so_that_the_server_says_why() -> None:
    made = login()
    made.prepare(lambda: NOW_S, pause_never)
    client = made.begin()
    client.evaluate(b"")
    assert (client.evaluate(b'{"status":"invalid_token"}'), client.is_complete) == (b"\x01", False)
    client.evaluate(b"")
    assert client.is_complete


@pytest.mark.parametrize(
    ("settings", "options", "said"),
    [
        (retrieving(None), "", "endpoint.url value is required"),
        ({**retrieving(), ALLOWED_URLS: f"{URL}/more"}, "", "The URL cannot be accessed due to"),
        (retrieving("ftp://a/b"), "", 'contains an invalid protocol \\(ftp\\); only "http"'),
        (retrieving("a/b"), "", "that is malformed: no protocol: a/b"),
        (retrieving("http:///b"), "", "that is malformed: no host"),
        (retrieving("http://a:b/"), "", "that is malformed: "),
        (retrieving(), "", "null for configuration sasl.oauthbearer.client.credentials.client.id"),
        (retrieving(), 'clientId="a"', "null for .*client.credentials.client.secret"),
        (retrieving("file:///no/token"), "", "contains a file \\(/no/token\\) that doesn't exist"),
        (retrieving("file:///"), "", "references a directory \\(/\\), not a file"),
        (retrieving(sasl_oauthbearer_jwt_retriever_class="x.Y"), "", "is x.Y, but kvorum has"),
    ],
)
def test_a_place_that_may_give_no_tokens_is_refused(
    settings: dict[str, str], options: str, said: str
) -> None:
    with pytest.raises(InvalidOAuthSettingsError, match=said) as raised:
        login(options, settings)
    assert str(raised.value).startswith(RETRIEVER_FAILED)


def test_another_handler_or_module_is_refused() -> None:
    with pytest.raises(InvalidOAuthSettingsError, match=r"is a\.B, but kvorum has"):
        login(ALICE, {"sasl.login.callback.handler.class": "a.B"})
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required username='a';"
    with pytest.raises(InvalidJaasConfigError, match=r"is .*OAuthBearerLoginModule, not .*Plain"):
        login(settings={"sasl.jaas.config": plain})


def token_in(path: Path, text: str) -> ClientLogin:
    path.write_text(text)
    return login("", retrieving(path.as_uri()))


def test_the_token_of_a_file_is_read_again_when_it_is_due(tmp_path: Path) -> None:
    file = tmp_path / "token"
    first = unsecured(iat=100, exp=200)
    second = unsecured(iat=190, exp=400)
    made = token_in(file, f"{first}\n")
    assert token_of(made, now_s=100) == first
    file.write_text(second)
    assert token_of(made, now_s=179) == first
    assert token_of(made, now_s=186) == second


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.b", "Malformed JWT provided; expected three sections"),
        ("a.b.c", "malformed Base64 URL encoded value"),
    ],
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str, said: str) -> None:
    made = token_in(tmp_path / "token", text)
    with pytest.raises(LoginFailedError, match=said):
        made.prepare(lambda: NOW_S, pause_never)


# The tokens are made in the test: a name that says the time is another one in each process.
@pytest.mark.parametrize(
    ("changed_claims", "said"),
    [
        ({"exp": None}, "exp value must be non-null"),
        ({"exp": -1}, 'exp value must be non-negative; value given was "-1000"'),
        ({"exp": "x"}, "exp value is not a number"),
        ({"sub": None}, "sub value must be non-null"),
        ({"sub": ""}, "sub value must be non-empty"),
        ({"sub": "  "}, "sub value must not contain only whitespace"),
        ({"scope": ["a", "b", "a"]}, "scope value must not contain duplicates - a already"),
    ],
)
def test_a_token_that_says_too_little_is_refused(
    tmp_path: Path, changed_claims: dict[str, object], said: str
) -> None:
    made = token_in(tmp_path / "token", unsecured(**changed_claims))
    with pytest.raises(LoginFailedError, match=said):
        made.prepare(lambda: NOW_S, pause_never)


def test_a_good_token_is_used_on_while_no_other_is_to_be_had(tmp_path: Path) -> None:
    file = tmp_path / "token"
    made = token_in(file, unsecured(iat=100, exp=200))
    kept = token_of(made, now_s=100)
    file.unlink()
    assert token_of(made, now_s=190) == kept
    assert isinstance(made, OAuthLogin)
    assert made.renew_at_ms == 200_000, "ten seconds later"
    with pytest.raises(LoginFailedError, match="No such file"):
        made.prepare(lambda: 200, pause_never)


@pytest.mark.parametrize(
    ("starts_ms", "ends_ms", "chance", "expected_ms"),
    [
        (0, HOUR_MS, 0.0, 0.8 * HOUR_MS),
        (0, HOUR_MS, 1.0, 0.85 * HOUR_MS),
        (None, HOUR_MS, 0.5, 0.825 * HOUR_MS),
        (0, 900_000, 0.5, 600_000),
        (-3 * HOUR_MS, HOUR_MS // 2, 0.0, 60_000),
        (0, 359_000, 0.0, 287_200),
        (-359_000, 100_000, 1.0, 85_000),
        (0, -1, 0.5, 10_000),
    ],
    ids=[
        "after most of its life",
        "later by chance",
        "from now on, as it does not say when it starts",
        "before the last 300 seconds",
        "not in the first 60 seconds",
        "with too short a life for both",
        "with too short a rest of its life for both",
        "soon, as it has ended",
    ],
)
def test_a_token_is_renewed_when_kafkas_client_does_it(
    starts_ms: int | None, ends_ms: int, chance: float, expected_ms: float
) -> None:
    token = ClientToken("", "alice", starts_ms, ends_ms)
    assert renewal_ms(token, RENEWAL, 0, chance) == int(expected_ms)


def test_a_login_goes_to_another_process_and_shows_no_secret() -> None:
    credentials = f'clientId="me" clientSecret="{SECRET}"'
    by_option = login(f"{ALICE} unsecuredLoginStringClaim_x='{SECRET}'")
    again = pickle.loads(pickle.dumps(by_option))
    assert claims_of(token_of(again))["x"] == SECRET
    by_url = ClientSecuritySettings.from_texts(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH_MODULE} required {credentials};",
            **retrieving(),
        }
    )
    assert SECRET not in repr(by_url) + repr(again) + repr(by_url.login)
