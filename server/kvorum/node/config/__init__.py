"""A node's configuration: `load_properties` reads the file, `NodeConfig` has the checked values.

Kafka's keys, defaults, checks and messages. Every refusal is a `ConfigError` of one line.
"""

from kvorum.node.config.errors import ConfigError
from kvorum.node.config.listeners import Listener
from kvorum.node.config.node_config import NodeConfig, ProcessRole, load_properties, parse_overrides
from kvorum.node.config.own_settings import LogFormat
from kvorum.node.config.security import SecuritySettings
from kvorum.node.config.settings import (
    BrokerSettings,
    GroupSettings,
    OffsetsTopicSettings,
    ShareGroupStateTopicSettings,
    ShareStateSettings,
    TransactionTopicSettings,
)

__all__ = [
    "BrokerSettings",
    "ConfigError",
    "GroupSettings",
    "Listener",
    "LogFormat",
    "NodeConfig",
    "OffsetsTopicSettings",
    "ProcessRole",
    "SecuritySettings",
    "ShareGroupStateTopicSettings",
    "ShareStateSettings",
    "TransactionTopicSettings",
    "load_properties",
    "parse_overrides",
]
