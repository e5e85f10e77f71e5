"""The key set of an issuer at a URL: had again in time, for missing keys, and after failures."""

from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from joserfc.jwk import ECKey
from tests.support.answering_server import Answer, AnsweringServer, answering
from tests.support.oauth_tokens import claims
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer, new_rsa_key

from kvorum.security.http_exchange import BODY_BYTES_MAX, HttpPlace
from kvorum.security.key_set_endpoint import JsonWebKeyEndpoint
from kvorum.security.oauth_bearer_server import InvalidTokenError
from kvorum.security.oauth_settings import OAuthSettings
from kvorum.security.renewable import RenewalFailedError
from kvorum.security.retries import Retries
from kvorum.security.signed_token import SignedTokenValidator

REFRESH_MS: Final = 3_600_000
FIRST: Final = new_rsa_key("first")
SECOND: Final = new_rsa_key("second")
OLD: Final = Issuer([FIRST])
NEW: Final = Issuer([SECOND, FIRST])
OF_OLD: Final = Answer(body=OLD.key_set().encode())
OF_NEW: Final = Answer(body=NEW.key_set().encode())


class Clock:
    """A clock that goes on by pauses, and by what a test adds to it."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0

    def wall_s(self) -> float:
        return self.now_ms / 1000

    def pause(self, seconds: float) -> None:
        self.now_ms += seconds * 1000


class Watched:
    """The keys at a server, and how often they were due before their time."""

    def __init__(self, server: AnsweringServer) -> None:
        self.server = server
        self.clock = Clock()
        self.due_count = 0
        place = HttpPlace(server.url)
        self.endpoint = JsonWebKeyEndpoint(place, refresh_ms=REFRESH_MS, retries=Retries(100, 500))
        self.endpoint.watch(self._note)

    def _note(self) -> None:
        self.due_count += 1

    def renew(self) -> None:
        self.endpoint.renew(self.clock.wall_s, self.clock.pause)

    def ids(self) -> Sequence[object]:
        return [key.fields["kid"] for key in self.endpoint.current_keys()]

    def miss(self, key_id: str) -> int:
        """Note a missing key, and return how often keys were due so far."""
        self.endpoint.note_missing(key_id, int(self.clock.now_ms))
        return self.due_count


@pytest.fixture
def watched() -> Iterator[Watched]:
    with answering(OF_OLD, OF_NEW) as server:
        yield Watched(server)


def test_keys_are_had_again_after_the_time_for_that(watched: Watched) -> None:
    watched.renew()
    assert (watched.ids(), watched.endpoint.renew_at_ms) == (["first"], 1_000_000 + REFRESH_MS)
    watched.renew()
    assert watched.ids() == ["second", "first"]
    assert [asked.method for asked in watched.server.asked] == ["GET", "GET"]


@pytest.mark.parametrize(
    ("answers", "said", "asked_count"),
    [
        ([Answer(404)], "Non 200 status code \\(404\\) returned from http://", 4),
        ([Answer(500)], "Non 200 status code \\(500\\)", 4),
        ([Answer(302, fields={"Location": "/keys"})], "Non 200 status code \\(302\\)", 4),
        ([Answer(body=b"<html>")], "Could not refresh JWKS: not a key set: no JSON", 1),
        ([Answer(body=b"\xff")], "Could not refresh JWKS", 1),
        ([Answer(body=b"x" * (BODY_BYTES_MAX + 1))], "an answer of more than", 4),
    ],
)
def test_the_keys_before_stay_where_others_cannot_be_had(
    answers: list[Answer], said: str, asked_count: int
) -> None:
    with answering(OF_OLD, *answers) as server:
        watched = Watched(server)
        watched.renew()
        with pytest.raises(RenewalFailedError, match=said):
            watched.renew()
        assert watched.ids() == ["first"]
        assert len(server.asked) == 1 + asked_count
        assert watched.endpoint.renew_at_ms == int(watched.clock.now_ms) + REFRESH_MS


def test_a_missing_key_is_looked_for_once_in_a_minute(watched: Watched) -> None:
    watched.renew()
    assert watched.miss("third") == 1
    assert watched.endpoint.renew_at_ms == watched.clock.now_ms
    watched.clock.now_ms += 59_999
    assert watched.miss("third") == 1
    assert watched.miss("fourth") == 2
    watched.clock.now_ms += 1
    assert watched.miss("third") == 3


def test_few_missing_keys_are_remembered_and_none_with_a_long_id(watched: Watched) -> None:
    for number in range(17):
        assert watched.miss(str(number)) == number + 1
    assert watched.miss("16") == 17
    assert watched.miss("0") == 18, "it was forgotten"
    assert watched.miss("x" * 1_001) == 18
    assert watched.miss("x" * 1_000) == 19


def test_a_token_by_a_new_key_is_taken_once_the_keys_were_had_again(watched: Watched) -> None:
    settings = OAuthSettings(
        jwks_url=watched.server.url,
        allowed_urls=(watched.server.url,),
        expected_audience=(AUDIENCE,),
        expected_issuer=ISSUER,
        takes_any_audience=False,
        takes_any_issuer=False,
        clock_skew_seconds=30,
        scope_claim="scope",
        subject_claim="sub",
        refresh_ms=REFRESH_MS,
        retry_backoff_ms=100,
        retry_backoff_ms_max=500,
    )
    now_ms = int(str(claims()["iat"])) * 1000
    validate = SignedTokenValidator(settings, watched.endpoint, lambda: now_ms)
    watched.renew()
    with pytest.raises(InvalidTokenError, match="no key of the issuer suits"):
        validate(NEW.token())
    assert watched.due_count == 1
    watched.renew()
    assert validate(NEW.token()).user == "alice"
    without_id = Issuer([ECKey.generate_key("P-256")]).token(header={"alg": "ES256"})
    with pytest.raises(InvalidTokenError, match="no key of the issuer suits"):
        validate(without_id)
    assert watched.due_count == 1, "it names no key that could be had"
