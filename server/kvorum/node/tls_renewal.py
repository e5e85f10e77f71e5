"""Other stores for the listeners and connections of a node, without a restart.

As in Kafka, every change of the dynamic configuration of this node alone, whatever its key, makes
it look at the files of its stores; a file that is replaced has no effect by itself.
"""

import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from immutables import Map

from kvorum.broker.views.reconfiguration import CONFIG_EXCEPTION, invalid_dynamic_configuration
from kvorum.metadata.api import invalid_request
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.config import ConfigError, NodeConfig
from kvorum.node.config.listener_ssl import ssl_of_listeners
from kvorum.node.config.values import NodeValues, listener_prefix
from kvorum.node.events.log_event import LogEvent
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.serving.listener_tls import ListenerTls
from kvorum.node.serving.used_tls import UsedTls
from kvorum.security.errors import InvalidSslSettingsError, UnfitStoresError
from kvorum.security.own_connection import check_own_connection
from kvorum.security.ssl_settings import SslSettings

STORE_KEYS: Final = (
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
    *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
    *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
    "ssl.truststore.certificates",
)
"""The keys of a listener that have an effect while it is open."""
_FAULT: Final = (
    "Encountered metadata publishing fault: Error updating node with new configuration: %s"
)
_VALIDATION: Final = "Validation of dynamic config update of SSLFactory failed: "
_CONFIGURATION_EXCEPTION: Final = "org.apache.kafka.common.errors.InvalidConfigurationException"
_log = logging.getLogger(__name__)


class Connecting:
    """The TLS of a node's connections to one listener of other nodes, and their way out."""

    def __init__(self, listener: str, used: UsedTls[ssl.SSLContext], outgoing: Outgoing) -> None:
        self.listener = listener
        self.used = used
        self._outgoing = outgoing

    def use(self, used: UsedTls[ssl.SSLContext]) -> None:
        """Have new connections use another context."""
        self.used = used
        self._outgoing.use_tls(used.context)


class _Following(NamedTuple):
    """The TLS that follows in a listener, and in the connections to it; none where it stays."""

    served: UsedTls[ssl.SSLContext | None] | None
    connecting: Sequence[tuple[Connecting, UsedTls[ssl.SSLContext]]]


class TlsRenewal:
    """Looks at the stores of a node when its dynamic values change.

    What cannot be used is logged, and the stores before stay in use.
    """

    def __init__(
        self,
        config: NodeConfig,
        listeners: Mapping[str, ListenerTls],
        connections: Sequence[Connecting],
    ) -> None:
        self._config = config
        self._listeners = listeners
        self._connections = connections
        self._values = Map[str, str]()

    def on_image(self, image: MetadataImage) -> None:
        """Look at the stores if the values of this node alone were written since the last image."""
        values = image.configs.of(ResourceType.BROKER, str(self._config.node_id))
        if values is self._values or not (values or self._values):
            return
        self._values = values
        try:
            settings = self._settings(values)
        except ConfigError as error:
            _log.error(_FAULT, error)
            return
        for name, each in settings.items():
            try:
                self._renew(name, each)
            except InvalidSslSettingsError as error:
                _log.error(_FAULT, f"listener {name}: {_told(error)}")

    def check(self, values: Mapping[str, str]) -> None:
        """Raise RequestError for dynamic values of this node with stores that it could not use.

        As in Kafka, files that were replaced do not count where no value is another one.
        """
        try:
            for name, settings in self._settings(values).items():
                if self._are_other(name, settings):
                    self._followed_by(name, settings)
        except ConfigError as error:
            raise invalid_request(str(error)) from error
        except InvalidSslSettingsError as error:
            raise invalid_dynamic_configuration(_told(error)) from error

    def _are_other(self, name: str, settings: SslSettings) -> bool:
        """Return whether a listener, or a connection to it, has other settings now."""
        listener = self._listeners.get(name)
        used = [one.used.settings for one in self._connections if one.listener == name]
        if listener is not None:
            used.append(listener.used.settings)
        return any(each != settings for each in used)

    def _settings(self, values: Mapping[str, str]) -> Mapping[str, SslSettings]:
        """Return the settings of each listener, with dynamic values before those of the file."""
        keys = {listener_prefix(name) + key for name in self._config.ssl for key in STORE_KEYS}
        dynamic = {key: value for key, value in values.items() if key in keys}
        texts = NodeValues({**self._config.texts, **dynamic})
        return ssl_of_listeners(texts, self._config.listeners)

    def _renew(self, name: str, settings: SslSettings) -> None:
        """Renew a listener and the connections to it together; raises InvalidSslSettingsError."""
        following = self._followed_by(name, settings)
        if following.served is not None:
            self._listeners[name].used = following.served
        for one, after in following.connecting:
            one.use(after)
        if following.served is not None or following.connecting:
            _log.info(LogEvent("New connections use other stores", listener=name))

    def _followed_by(self, name: str, settings: SslSettings) -> _Following:
        """Return what follows with these settings; raises InvalidSslSettingsError."""
        listener = self._listeners.get(name)
        served = None if listener is None else listener.used.successor(settings)
        connecting = [
            (one, after)
            for one in self._connections
            if one.listener == name and (after := one.used.successor(settings)) is not None
        ]
        if served is not None:
            for _, after in connecting:
                check_own_connection(served.context, after.context)
        return _Following(served, connecting)


def _told(error: InvalidSslSettingsError) -> str:
    """Return the text of an error as Kafka's SslFactory has it."""
    kind = CONFIG_EXCEPTION if isinstance(error, UnfitStoresError) else _CONFIGURATION_EXCEPTION
    return f"{_VALIDATION}{kind}: {error}"
