"""The settings by which signed tokens of OAUTHBEARER are verified, and Kafka's refusals of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult

from kvorum.security.allowed_url import ALLOWED_URLS, checked_url, configuring, file_of, urls_of
from kvorum.security.errors import InvalidOAuthSettingsError

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
ANY_AUDIENCE: Final = "sasl.oauthbearer.allow.unverified.audience"
ANY_ISSUER: Final = "sasl.oauthbearer.allow.unverified.issuer"
_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_DEFAULT_VALIDATOR: Final = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """The keys of an issuer, and what a token has to say.

    Without `expected_audience` or `expected_issuer`, `takes_any_audience` and `takes_any_issuer`
    have to say so. A key set is read from `jwks_url` only where that is one of `allowed_urls`.
    """

    jwks_url: Annotated[str | None, JWKS_URL]
    allowed_urls: Annotated[tuple[str, ...], ALLOWED_URLS, urls_of]
    expected_audience: Annotated[tuple[str, ...], AUDIENCE]
    expected_issuer: Annotated[str | None, ISSUER]
    takes_any_audience: Annotated[bool, ANY_AUDIENCE]
    takes_any_issuer: Annotated[bool, ANY_ISSUER]
    clock_skew_seconds: Annotated[int, "sasl.oauthbearer.clock.skew.seconds"]
    refresh_ms: Annotated[int, "sasl.oauthbearer.jwks.endpoint.refresh.ms"]
    retry_backoff_ms: Annotated[int, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"]
    retry_backoff_ms_max: Annotated[int, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"]
    scope_claim: Annotated[str, "sasl.oauthbearer.scope.claim.name"]
    subject_claim: Annotated[str, "sasl.oauthbearer.sub.claim.name"]

    def checked_url(self) -> SplitResult:
        """Return the parts of the URL of the key set, in Kafka's order of checks.

        Raises InvalidOAuthSettingsError.
        """
        if not self.jwks_url:
            raise InvalidOAuthSettingsError(
                f'The OAuth validator for the broker requires "{JWKS_URL}" to be configured so '
                f'that JWT signatures can be verified, but it was not set. Set "{JWKS_URL}" to the '
                "OAuth/OIDC provider's JWKS endpoint URL for this listener, or configure a "
                f'signature-verifying "{_VALIDATOR}".'
            )
        with configuring(_DEFAULT_VALIDATOR, _VALIDATOR):
            self._check_claims()
            return checked_url(JWKS_URL, self.jwks_url, self.allowed_urls)

    def file_at(self, parts: SplitResult) -> Path:
        """Return the file that the URL names; raises InvalidOAuthSettingsError."""
        with configuring(_DEFAULT_VALIDATOR, _VALIDATOR):
            return file_of(JWKS_URL, parts)

    def _check_claims(self) -> None:
        if not self.expected_audience and not self.takes_any_audience:
            raise InvalidOAuthSettingsError(
                f'The OAuth validator for the broker requires "{AUDIENCE}" to be '
                'configured so that the token\'s audience ("aud") claim can be verified, but it '
                f'was not set. Set "{AUDIENCE}" to the audience(s) that identify this cluster, or '
                f'set "{ANY_AUDIENCE}" to true to accept tokens regardless of their audience.'
            )
        if not self.expected_issuer and not self.takes_any_issuer:
            raise InvalidOAuthSettingsError(
                f'The OAuth validator for the broker requires "{ISSUER}" to be configured '
                'so that the token\'s issuer ("iss") claim can be verified, but it was not set. '
                f'Set "{ISSUER}" to the issuer URL of the OAuth/OIDC provider that signs the '
                f'tokens, or set "{ANY_ISSUER}" to true to accept tokens regardless of their '
                "issuer."
            )
