"""The settings by which a client comes to its tokens of OAUTHBEARER (KIP-768)."""

from dataclasses import dataclass, field
from typing import Annotated, Final

from kvorum.security.allowed_url import ALLOWED_URLS, urls_of

LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - the name of a key
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - as above
RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalSettings:
    """The time at which a token is replaced, within its life.

    That is after `window_factor` of it, and up to `window_jitter` more by chance, but neither
    within `period_s_min` after the login nor within `buffer_s` before the end.
    """

    window_factor: Annotated[float, "sasl.login.refresh.window.factor"]
    window_jitter: Annotated[float, "sasl.login.refresh.window.jitter"]
    period_s_min: Annotated[int, "sasl.login.refresh.min.period.seconds"]
    buffer_s: Annotated[int, "sasl.login.refresh.buffer.seconds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthLoginSettings:
    """The place that gives tokens, and how it is asked.

    `handler` is the name of a class of Kafka's, None where it is not set. Time limits are None, or
    0, where they are not set.
    """

    handler: Annotated[str | None, LOGIN_HANDLER]
    retriever: Annotated[str, RETRIEVER]
    token_url: Annotated[str | None, TOKEN_URL]
    allowed_urls: Annotated[tuple[str, ...], ALLOWED_URLS, urls_of]
    client_id: Annotated[str | None, CLIENT_ID]
    client_secret: Annotated[str | None, CLIENT_SECRET] = field(repr=False)
    scope: Annotated[str | None, "sasl.oauthbearer.scope"]
    connect_ms_max: Annotated[int | None, "sasl.login.connect.timeout.ms"]
    read_ms_max: Annotated[int | None, "sasl.login.read.timeout.ms"]
    retry_backoff_ms: Annotated[int, "sasl.login.retry.backoff.ms"]
    retry_backoff_ms_max: Annotated[int, "sasl.login.retry.backoff.max.ms"]
    scope_claim: Annotated[str, "sasl.oauthbearer.scope.claim.name"]
    user_claim: Annotated[str, "sasl.oauthbearer.sub.claim.name"]
    renewal: RenewalSettings
