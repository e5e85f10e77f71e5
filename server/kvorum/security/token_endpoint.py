"""Tokens from an endpoint, by client credentials (RFC 6749, 4.4), asked for as by Kafka."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import quote_plus

from kvorum.security.client_token import ClientToken, client_token
from kvorum.security.http_exchange import WAIT_MS, HttpFailedError, HttpPlace
from kvorum.security.http_place import http_place
from kvorum.security.oauth_login_settings import OAuthLoginSettings
from kvorum.security.retries import Retries, RetryError

_FINAL: Final = frozenset({*range(400, 408), *range(409, 416), HTTPStatus.NOT_IMPLEMENTED, 505})
"""The statuses after which Kafka's client does not ask again."""
_SHOWN_CHARACTERS_MAX: Final = 1_000
_KAFKA_EXCEPTION: Final = "org.apache.kafka.common.KafkaException"
_UNRETRYABLE: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.secured.UnretryableException"
)
_NOTHING: Final = (
    "org.apache.kafka.common.security.oauthbearer.JwtRetrieverException: The token endpoint "
    "response did not contain a valid JWT"
)
_GRANT: Final = "grant_type=client_credentials"


class TokenNotGivenError(Exception):
    """An endpoint that gives no token; the text is that of Kafka's exception, without secrets."""


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An endpoint with the credentials to show there; `options` are those of the login module."""

    url: str
    settings: OAuthLoginSettings
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    options: Mapping[str, str] = field(repr=False)

    def check(self) -> None:
        """Raise InvalidSslSettingsError for a store that cannot be used."""
        self._place()

    def retrieve(
        self, wall_s: Callable[[], float], pause_s: Callable[[float], None]
    ) -> ClientToken:
        """Ask until a token comes or the time for that is over, and return the token.

        Raises TokenNotGivenError, and InvalidTokenError for a token that Kafka's client refuses.
        """
        settings = self.settings
        place = self._place()
        retries = Retries(settings.retry_backoff_ms, settings.retry_backoff_ms_max)
        try:
            body = retries.run(lambda: self._ask(place), wall_s, pause_s)
        except RetryError as error:
            raise TokenNotGivenError(f"{_KAFKA_EXCEPTION}: {error}") from error
        return client_token(
            _token_in(body), user_claim=settings.user_claim, scope_claim=settings.scope_claim
        )

    def _ask(self, place: HttpPlace) -> bytes:
        """Return the body of a good answer."""
        shown = b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {shown}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        form = f"{_GRANT}&scope={quote_plus(self.scope)}" if self.scope else _GRANT
        try:
            status, body = place.ask("POST", headers, form.encode())
        except HttpFailedError as error:
            raise RetryError(f"java.io.IOException: {error}") from error
        if status in {HTTPStatus.OK, HTTPStatus.CREATED}:
            if body:
                return body
            raise RetryError(
                "java.io.IOException: The token endpoint response was unexpectedly empty despite "
                f"response code {status} from {self.url} and error message {{}}"
            )
        told = _told_in(body)
        if status in _FINAL:
            raise TokenNotGivenError(
                f"{_KAFKA_EXCEPTION}: {_UNRETRYABLE}: java.io.IOException: The response code "
                f"{status} and error response {told} was encountered reading the token endpoint "
                "response; will not attempt further retries"
            )
        raise RetryError(
            f"java.io.IOException: The unexpected response code {status} and error message {told} "
            "was encountered reading the token endpoint response"
        )

    def _place(self) -> HttpPlace:
        settings = self.settings
        return http_place(
            self.url,
            self.options,
            connect_ms_max=settings.connect_ms_max or WAIT_MS,
            read_ms_max=settings.read_ms_max or WAIT_MS,
        )


def _token_in(body: bytes) -> str:
    """Return the token of an answer, which is not in the text of an error."""
    document = _object_in(body)
    for name in ("access_token", "id_token"):
        value = None if document is None else document.get(name)
        if isinstance(value, str) and value.strip():
            return value
    raise TokenNotGivenError(_NOTHING)


def _told_in(body: bytes) -> str:
    """Return what an answer says of an error, as Kafka's client shows it."""
    text = body.decode("utf-8", errors="replace")
    document = _object_in(body)
    if not text.strip():
        return "{}"
    if document is None:
        return f"{{{text[:_SHOWN_CHARACTERS_MAX]}}}"
    for name, more in (("error", "error_description"), ("errorCode", "errorSummary")):
        if name in document:
            described = json.dumps(document[more]) if more in document else ""
            told = f"{{{json.dumps(document[name])} - {described}}}"
            return told[:_SHOWN_CHARACTERS_MAX]
    return text[:_SHOWN_CHARACTERS_MAX]


def _object_in(body: bytes) -> Mapping[str, object] | None:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None
