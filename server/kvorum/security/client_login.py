"""The login of a client: what begins its authentications by one mechanism."""

from collections.abc import Callable
from typing import Protocol

from kvorum.security.oauth_login import OAuthLogin
from kvorum.security.oauth_login_settings import OAuthLoginSettings
from kvorum.security.sasl_client import SaslClient
from kvorum.security.sasl_login import SaslLogin
from kvorum.security.sasl_login_modules import OAUTHBEARER, read_login_module


class ClientLogin(Protocol):
    """The means by which connections log in."""

    @property
    def mechanism(self) -> str:
        """The mechanism of SASL."""
        ...

    def prepare(self, wall_s: Callable[[], float], pause_s: Callable[[float], None]) -> None:
        """Have ready what an authentication needs, which may block; raises LoginFailedError."""
        ...

    def begin(self) -> SaslClient:
        """Begin an authentication, for which everything is ready."""
        ...


def client_login(mechanism: str, jaas_config: str, settings: OAuthLoginSettings) -> ClientLogin:
    """Return the login by one of the mechanisms that are served, not yet prepared.

    Raises InvalidJaasConfigError, InvalidOAuthSettingsError and InvalidSslSettingsError.
    """
    if mechanism == OAUTHBEARER:
        return OAuthLogin.of(read_login_module(jaas_config), settings)
    return SaslLogin.from_jaas_config(mechanism, jaas_config)
