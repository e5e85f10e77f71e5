"""The logins by which a node connects to others by SASL, made before it opens its log."""

from typing import NamedTuple

from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.security.jaas_config import InvalidJaasConfigError, missing_of_server
from kvorum.security.sasl_login import SaslLogin


class NodeLogins(NamedTuple):
    """The logins at brokers and at controllers; None where no SASL is asked for."""

    at_brokers: SaslLogin | None
    at_controllers: SaslLogin | None


def logins_of_node(config: NodeConfig) -> NodeLogins:
    """Return what the connections of a node log in with; raises NodeStartError."""
    listeners = config.listeners
    return NodeLogins(
        at_brokers=_login_at(config, listeners.inter_broker_name),
        at_controllers=_login_at(config, listeners.controller_names[0].upper()),
    )


def _login_at(config: NodeConfig, listener: str) -> SaslLogin | None:
    settings = config.logins.get(listener)
    if settings is None:
        return None
    try:
        if settings.jaas_config is None:
            raise missing_of_server(listener, settings.mechanism)
        return SaslLogin.from_jaas_config(settings.mechanism, settings.jaas_config)
    except InvalidJaasConfigError as error:
        raise NodeStartError(
            f"The node cannot log in at listener {listener} of others: {error}"
        ) from error
