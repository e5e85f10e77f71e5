"""The means of a listener to authenticate clients by SASL, made before the node opens its log."""

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.credentials_image import ScramImage
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.sasl_mechanisms import ScramSource, mechanisms_of
from kvorum.security.sasl_server import SaslMechanism

_NONCE_CHARACTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONCE_LENGTH: Final = 26
"""More than the 130 bits that Kafka's nonces have."""


class ListenerSasl(NamedTuple):
    """The mechanisms of a listener, and its limits for clients that are not authenticated.

    No frame may be longer than `frame_bytes_max`. A client that is not let in hears of it, and is
    closed, after `failure_delay_ms`.
    """

    mechanisms: Mapping[str, SaslMechanism]
    frame_bytes_max: int
    failure_delay_ms: int


def sasl_of_node(
    config: NodeConfig, published: Callable[[], ScramImage], random: Random
) -> Mapping[str, ListenerSasl]:
    """Return what each listener with SASL needs, by name; raises NodeStartError."""
    scram = ScramSource(
        published, lambda: "".join(random.choices(_NONCE_CHARACTERS, k=_NONCE_LENGTH))
    )
    found: dict[str, ListenerSasl] = {}
    for name, settings in config.sasl.items():
        try:
            mechanisms = mechanisms_of(name, settings, scram)
        except InvalidJaasConfigError as error:
            raise NodeStartError(f"Listener {name} cannot use SASL: {error}") from error
        found[name] = ListenerSasl(
            mechanisms, settings.receive_bytes_max, config.network.failed_authentication_delay_ms
        )
    return MappingProxyType(found)
