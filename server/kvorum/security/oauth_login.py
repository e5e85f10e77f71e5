"""The login of a client by tokens of OAUTHBEARER, which it replaces before their end (KIP-255)."""

from collections.abc import Callable, Mapping
from secrets import SystemRandom
from typing import Final, Protocol

from kvorum.security.allowed_url import FILE, checked_url, configuring, file_of
from kvorum.security.client_token import ClientToken
from kvorum.security.errors import InvalidOAuthSettingsError, InvalidSslSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError, LoginModule
from kvorum.security.oauth_bearer_client import OAuthBearerClient
from kvorum.security.oauth_bearer_messages import check_extension
from kvorum.security.oauth_bearer_server import InvalidTokenError
from kvorum.security.oauth_login_settings import (
    CLIENT_ID,
    CLIENT_SECRET,
    LOGIN_HANDLER,
    RETRIEVER,
    TOKEN_URL,
    OAuthLoginSettings,
    RenewalSettings,
)
from kvorum.security.sasl_client import LoginFailedError, SaslClient
from kvorum.security.sasl_login_modules import OAUTH_MODULE, OAUTHBEARER
from kvorum.security.token_endpoint import TokenEndpoint, TokenNotGivenError
from kvorum.security.token_file import TokenFile
from kvorum.security.unsecured_login import EXTENSION as UNSECURED_EXTENSION
from kvorum.security.unsecured_login import UnsecuredTokens

RETRY_MS: Final = 10_000
"""The pause after a token that could not be had, as in Kafka."""
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
RETRIEVING_HANDLER: Final = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
_UNSECURED_HANDLER: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
_DEFAULT_RETRIEVER: Final = f"{_PACKAGE}.DefaultJwtRetriever"
_RETRIEVERS: Final = (
    _DEFAULT_RETRIEVER,
    f"{_PACKAGE}.ClientCredentialsJwtRetriever",
    f"{_PACKAGE}.FileJwtRetriever",
)
_EXTENSION: Final = "extension_"

_NOT_HAD: Final = (InvalidSslSettingsError, InvalidTokenError, TokenNotGivenError, OSError)


class TokenSource(Protocol):
    """A way to a token."""

    def check(self) -> None:
        """Raise InvalidOAuthSettingsError or InvalidSslSettingsError for settings of no use."""
        ...

    def retrieve(
        self, wall_s: Callable[[], float], pause_s: Callable[[float], None]
    ) -> ClientToken:
        """Return a token; this may block for as long as `pause_s` and a server have it."""
        ...


class OAuthLogin:
    """A login by tokens: authentications begin with the one that `prepare` or `renew` had.

    An object can be pickled; no text of it has the token or what it is had with.
    """

    def __init__(
        self, source: TokenSource, renewal: RenewalSettings, extensions: Mapping[str, str]
    ) -> None:
        self._source = source
        self._renewal = renewal
        self._extensions = extensions
        self._token: ClientToken | None = None
        self.renew_at_ms = 0
        """The time from which another token is to be had, in milliseconds since 1970."""

    @classmethod
    def of(cls, module: LoginModule, settings: OAuthLoginSettings) -> "OAuthLogin":
        """Return the login of a login module.

        Raises InvalidJaasConfigError, InvalidOAuthSettingsError and InvalidSslSettingsError.
        """
        if module.class_name != OAUTH_MODULE:
            raise InvalidJaasConfigError(
                f"The login module of mechanism {OAUTHBEARER} is {OAUTH_MODULE}, not "
                f"{module.class_name}"
            )
        options = dict(module.options)
        if settings.handler == RETRIEVING_HANDLER:
            source = _source_by_url(settings, options)
            prefix = _EXTENSION
        elif settings.handler in {None, _UNSECURED_HANDLER}:
            source = UnsecuredTokens(options)
            prefix = UNSECURED_EXTENSION
        else:
            raise InvalidOAuthSettingsError(
                f"{LOGIN_HANDLER} is {settings.handler}, but kvorum has {_UNSECURED_HANDLER}, "
                f"{RETRIEVING_HANDLER} only"
            )
        source.check()
        extensions = {
            name.removeprefix(prefix): value
            for name, value in options.items()
            if name.startswith(prefix)
        }
        for name, value in extensions.items():
            check_extension(name, value)
        return cls(source, settings.renewal, extensions)

    @property
    def name(self) -> str:
        """A name for the operator."""
        return f"token to log in with by {OAUTHBEARER}"

    def watch(self, on_due: Callable[[], None]) -> None:
        """Do nothing: the next renewal is due when the last one has said."""

    @property
    def mechanism(self) -> str:
        """The mechanism of SASL."""
        return OAUTHBEARER

    def prepare(self, wall_s: Callable[[], float], pause_s: Callable[[float], None]) -> None:
        """Have a token that is good; this may block. `wall_s` has the seconds since 1970.

        Raises LoginFailedError where none is to be had.
        """
        now_ms = wall_s() * 1000
        if now_ms < self.renew_at_ms:
            return
        try:
            self.renew(wall_s, pause_s)
        except LoginFailedError:
            if self._token is None or self._token.expires_at_ms <= now_ms:
                raise

    def renew(self, wall_s: Callable[[], float], pause_s: Callable[[float], None]) -> None:
        """Have another token, which may block; raises LoginFailedError, and keeps the one before.

        Another try makes sense at `renew_at_ms`.
        """
        try:
            token = self._source.retrieve(wall_s, pause_s)
        except _NOT_HAD as error:
            self.renew_at_ms = int(wall_s() * 1000) + RETRY_MS
            raise LoginFailedError(str(error)) from error
        now_ms = int(wall_s() * 1000)
        self.renew_at_ms = renewal_ms(token, self._renewal, now_ms, SystemRandom().random())
        self._token = token

    def begin(self) -> SaslClient:
        """Begin an authentication with the token that is there."""
        assert self._token is not None
        return OAuthBearerClient(self._token.text, self._extensions)


def renewal_ms(token: ClientToken, settings: RenewalSettings, now_ms: int, chance: float) -> int:
    """Return the time at which a token that came now is replaced, as Kafka's client has it.

    `chance` is between 0 and 1. Times are in milliseconds since 1970.
    """
    end_ms = token.expires_at_ms
    if now_ms > end_ms:
        return now_ms + RETRY_MS
    share = settings.window_factor + settings.window_jitter * chance
    earliest_ms = now_ms + settings.period_s_min * 1000
    latest_ms = end_ms - settings.buffer_s * 1000
    if earliest_ms > latest_ms:
        return now_ms + int((end_ms - now_ms) * share)
    start_ms = now_ms if token.starts_at_ms is None else token.starts_at_ms
    proposed_ms = start_ms + int((end_ms - start_ms) * share)
    return max(earliest_ms, min(latest_ms, proposed_ms))


def _source_by_url(settings: OAuthLoginSettings, options: Mapping[str, str]) -> TokenSource:
    with configuring(_DEFAULT_RETRIEVER, RETRIEVER):
        return _checked_source(settings, options)


def _checked_source(settings: OAuthLoginSettings, options: Mapping[str, str]) -> TokenSource:
    if settings.retriever not in _RETRIEVERS:
        raise InvalidOAuthSettingsError(
            f"{RETRIEVER} is {settings.retriever}, but kvorum has {', '.join(_RETRIEVERS)} only"
        )
    url = settings.token_url
    if not url:
        raise InvalidOAuthSettingsError(
            f"The OAuth configuration option {TOKEN_URL} value is required"
        )
    parts = checked_url(TOKEN_URL, url, settings.allowed_urls)
    if parts.scheme == FILE:
        return TokenFile(file_of(TOKEN_URL, parts), settings)
    return TokenEndpoint(
        url,
        settings,
        _required(CLIENT_ID, settings.client_id or options.get("clientId")),
        _required(CLIENT_SECRET, settings.client_secret or options.get("clientSecret")),
        settings.scope or options.get("scope"),
        options,
    )


def _required(key: str, value: str | None) -> str:
    if not value:
        raise InvalidOAuthSettingsError(f"Invalid value null for configuration {key}")
    return value
