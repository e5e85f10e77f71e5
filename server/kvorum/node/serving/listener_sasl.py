"""The means of a listener to authenticate clients by SASL, made before the node opens its log."""

import logging
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.delegation_tokens import TokenSecrets
from kvorum.metadata.image import MetadataImage
from kvorum.node.clock import Clock
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.node.events.log_event import LogEvent
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.sasl_login_modules import OAUTHBEARER
from kvorum.security.sasl_mechanisms import LoginSource, mechanisms_of
from kvorum.security.sasl_server import SaslMechanism
from kvorum.security.token_credentials import TokenCredentials

_NONCE_CHARACTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONCE_LENGTH: Final = 26
"""More than the 130 bits that Kafka's nonces have."""
_SALT_BYTES: Final = 16
_UNSECURED: Final = "Tokens of OAUTHBEARER are not verified: anybody can come as any user"
_log = logging.getLogger(__name__)


class ListenerSasl(NamedTuple):
    """The mechanisms of a listener, and its limits for clients that are not authenticated.

    No frame may be longer than `frame_bytes_max`. A client that is not let in hears of it, and is
    closed, after `failure_delay_ms`.
    """

    mechanisms: Mapping[str, SaslMechanism]
    frame_bytes_max: int
    failure_delay_ms: int


def sasl_of_node(
    config: NodeConfig, published: Callable[[], MetadataImage], random: Random, clock: Clock
) -> Mapping[str, ListenerSasl]:
    """Return what each listener with SASL needs, by name; raises NodeStartError."""
    secrets = TokenSecrets(config.security.tokens)
    source = LoginSource(
        published,
        TokenCredentials(secrets, lambda: random.randbytes(_SALT_BYTES)),
        lambda: "".join(random.choices(_NONCE_CHARACTERS, k=_NONCE_LENGTH)),
        clock.wall_ms,
    )
    found: dict[str, ListenerSasl] = {}
    for name, settings in config.sasl.items():
        try:
            mechanisms = mechanisms_of(name, settings, source)
        except InvalidJaasConfigError as error:
            raise NodeStartError(f"Listener {name} cannot use SASL: {error}") from error
        if OAUTHBEARER in mechanisms:
            _log.warning(LogEvent(_UNSECURED, listener=name))
        found[name] = ListenerSasl(
            mechanisms, settings.receive_bytes_max, config.network.failed_authentication_delay_ms
        )
    return MappingProxyType(found)
