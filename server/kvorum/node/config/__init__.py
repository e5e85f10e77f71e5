"""A node's configuration: `load_properties` reads the file, `NodeConfig` has the checked values.

Kafka's keys, defaults, checks and messages. Every refusal is a `ConfigError` of one line.
"""

from kvorum.node.config.errors import ConfigError
from kvorum.node.config.group_settings import GroupSettings, OffsetsTopicSettings
from kvorum.node.config.known import KEYS_IN_USE
from kvorum.node.config.listener import Listener, SecurityProtocol
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.node_config import NodeConfig, ProcessRole, load_properties, parse_overrides
from kvorum.node.config.own_settings import OWN_KEYS, LogFormat, OwnSettings
from kvorum.node.config.security import SecuritySettings
from kvorum.node.config.settings import (
    BrokerSettings,
    LogSettings,
    MetadataLogSettings,
    NetworkSettings,
    QuorumSettings,
    TopicSettings,
)

__all__ = [
    "KEYS_IN_USE",
    "OWN_KEYS",
    "BrokerSettings",
    "ConfigError",
    "GroupSettings",
    "Listener",
    "Listeners",
    "LogFormat",
    "LogSettings",
    "MetadataLogSettings",
    "NetworkSettings",
    "NodeConfig",
    "OffsetsTopicSettings",
    "OwnSettings",
    "ProcessRole",
    "QuorumSettings",
    "SecurityProtocol",
    "SecuritySettings",
    "TopicSettings",
    "load_properties",
    "parse_overrides",
]
