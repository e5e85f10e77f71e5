"""The logins by which a node connects to others by SASL, made before it opens its log."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.security.client_login import ClientLogin, client_login
from kvorum.security.errors import InvalidOAuthSettingsError, InvalidSslSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError, missing_of_server
from kvorum.security.oauth_login import OAuthLogin
from kvorum.security.renewable import Renewable

_INVALID: Final = (InvalidJaasConfigError, InvalidOAuthSettingsError, InvalidSslSettingsError)


class NodeLogins(NamedTuple):
    """The logins at brokers and at controllers; None where no SASL is asked for."""

    at_brokers: ClientLogin | None
    at_controllers: ClientLogin | None

    @property
    def renewables(self) -> Sequence[Renewable]:
        """Those that need a token."""
        return [login for login in self if isinstance(login, OAuthLogin)]


def logins_of_node(config: NodeConfig) -> NodeLogins:
    """Return what the connections of a node log in with; raises NodeStartError."""
    listeners = config.listeners
    return NodeLogins(
        at_brokers=_login_at(config, listeners.inter_broker_name),
        at_controllers=_login_at(config, listeners.controller_names[0].upper()),
    )


def _login_at(config: NodeConfig, listener: str) -> ClientLogin | None:
    settings = config.logins.get(listener)
    if settings is None:
        return None
    try:
        if settings.jaas_config is None:
            raise missing_of_server(listener, settings.mechanism)
        return client_login(settings.mechanism, settings.jaas_config, settings.oauth)
    except _INVALID as error:
        raise NodeStartError(
            f"The node cannot log in at listener {listener} of others: {error}"
        ) from error
