"""Other stores for the listeners of a node, without a restart.

As in Kafka, every change of the dynamic configuration of this node alone, whatever its key, makes
it look at the files of its stores; a file that is replaced has no effect by itself.
"""

import logging
from collections.abc import Mapping
from typing import Final

from immutables import Map

from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.config import ConfigError, NodeConfig
from kvorum.node.config.listener_ssl import ssl_of_listeners
from kvorum.node.config.values import NodeValues, listener_prefix
from kvorum.node.events.log_event import LogEvent
from kvorum.node.serving.listener_tls import ListenerTls
from kvorum.security.errors import InvalidSslSettingsError
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
_log = logging.getLogger(__name__)


class TlsRenewal:
    """Looks at the stores of a node's listeners when the node's dynamic values change.

    What cannot be used is logged, and the stores before stay in use.
    """

    def __init__(self, config: NodeConfig, listeners: Mapping[str, ListenerTls]) -> None:
        self._config = config
        self._listeners = listeners
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
        for name, listener in self._listeners.items():
            self._renew(name, listener, settings[name])

    def _settings(self, values: Mapping[str, str]) -> Mapping[str, SslSettings]:
        """Return the settings of each listener, with dynamic values before those of the file."""
        keys = {listener_prefix(name) + key for name in self._listeners for key in STORE_KEYS}
        dynamic = {key: value for key, value in values.items() if key in keys}
        texts = NodeValues({**self._config.texts, **dynamic})
        return ssl_of_listeners(texts, self._config.listeners)

    def _renew(self, name: str, listener: ListenerTls, settings: SslSettings) -> None:
        try:
            is_renewed = listener.renew(settings)
        except InvalidSslSettingsError as error:
            _log.error(_FAULT, f"listener {name}: {error}")
            return
        if is_renewed:
            _log.info(LogEvent("New connections use other stores", listener=name))
