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
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.serving.listener_start_errors import listener_start_errors
from kvorum.security.errors import InvalidOAuthSettingsError, InvalidSslSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.renewable import Renewable
from kvorum.security.sasl_login_modules import OAUTHBEARER
from kvorum.security.sasl_mechanisms import LoginSource, mechanisms_of
from kvorum.security.sasl_server import SaslMechanism
from kvorum.security.sasl_settings import MechanismSettings
from kvorum.security.token_credentials import TokenCredentials

_NONCE_CHARACTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONCE_LENGTH: Final = 26
"""More than the 130 bits that Kafka's nonces have."""
_SALT_BYTES: Final = 16
_UNSECURED: Final = "Tokens of OAUTHBEARER are not verified: anybody can come as any user"
_INVALID: Final = (InvalidJaasConfigError, InvalidOAuthSettingsError, InvalidSslSettingsError)
_log = logging.getLogger(__name__)


class ListenerSasl(NamedTuple):
    """The mechanisms of a listener, and its limits for clients that are not authenticated.

    No frame may be longer than `frame_bytes_max`. A client that is not let in hears of it, and is
    closed, after `failure_delay_ms`.
    """

    mechanisms: Mapping[str, SaslMechanism]
    frame_bytes_max: int
    failure_delay_ms: int


class RefusedTokens:
    """Logs why tokens of OAUTHBEARER are refused, which their clients do not hear."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals = RareEvents()

    def note(self, reason: str) -> None:
        """Log a reason unless such a line was logged a moment ago."""
        suppressed_count = self._refusals.happened(self._clock.monotonic_ms())
        if suppressed_count is not None:
            others = suppressed_count or None
            _log.warning(LogEvent("A token is refused", reason=reason, others=others))


def sasl_of_node(
    config: NodeConfig,
    published: Callable[[], MetadataImage],
    random: Random,
    clock: Clock,
    *,
    note_renewable: Callable[[Renewable], None],
) -> Mapping[str, ListenerSasl]:
    """Return what each listener with SASL needs, by name; raises NodeStartError.

    `note_renewable` takes the key sets that have to be had from elsewhere.
    """
    secrets = TokenSecrets(config.security.tokens)
    source = LoginSource(
        published,
        TokenCredentials(secrets, lambda: random.randbytes(_SALT_BYTES)),
        lambda: "".join(random.choices(_NONCE_CHARACTERS, k=_NONCE_LENGTH)),
        clock.wall_ms,
        RefusedTokens(clock).note,
        note_renewable,
    )
    found: dict[str, ListenerSasl] = {}
    for name, settings in config.sasl.items():
        with listener_start_errors(name, uses="SASL", needs="joserfc", invalid=_INVALID):
            mechanisms = mechanisms_of(name, settings, source)
        if OAUTHBEARER in mechanisms:
            _warn_of_tokens(name, settings.mechanisms[OAUTHBEARER])
        found[name] = ListenerSasl(
            mechanisms, settings.receive_bytes_max, config.network.failed_authentication_delay_ms
        )
    return MappingProxyType(found)


def _warn_of_tokens(listener: str, settings: MechanismSettings) -> None:
    """Log which tokens of OAUTHBEARER are taken without a reason to trust them."""
    if not settings.verifies_tokens:
        _log.warning(LogEvent(_UNSECURED, listener=listener))
        return
    if not settings.oauth.expected_audience:
        _log.warning(LogEvent("Tokens for any audience are accepted", listener=listener))
    if not settings.oauth.expected_issuer:
        _log.warning(LogEvent("Tokens of any issuer are accepted", listener=listener))
