"""A token in a file, which the operator's own means replace before its end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvorum.security.client_token import ClientToken, client_token
from kvorum.security.oauth_bearer_server import InvalidTokenError
from kvorum.security.oauth_login_settings import OAuthLoginSettings


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Reads the token of a file, as it is when it is asked for."""

    path: Path
    settings: OAuthLoginSettings

    def check(self) -> None:
        """Check nothing more: what is in the file may change."""

    def retrieve(
        self,
        wall_s: Callable[[], float],  # noqa: ARG002 - the file knows the time
        pause_s: Callable[[float], None],  # noqa: ARG002 - nothing is waited for
    ) -> ClientToken:
        """Return the token; raises InvalidTokenError, or OSError for a file that is gone."""
        settings = self.settings
        try:
            text = self.path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTokenError("the file of the token is no text") from error
        return client_token(text, user_claim=settings.user_claim, scope_claim=settings.scope_claim)
