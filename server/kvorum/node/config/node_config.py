"""The whole configuration of a node, from its properties file and the command line's overrides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from kvorum.broker.share_group_config import ShareFetchSettings
from kvorum.metadata.config_definitions import Settings, ValueOf, read_settings
from kvorum.node.config.assignors import check_assignors_can_be_served
from kvorum.node.config.checks import check_authorizer, check_node
from kvorum.node.config.errors import ConfigError
from kvorum.node.config.listener_sasl import (
    check_can_log_in,
    check_sasl_can_be_served,
    logins_between_nodes,
    sasl_of_listeners,
)
from kvorum.node.config.listener_ssl import ssl_of_listeners
from kvorum.node.config.listeners import Listeners, parse_node_listeners
from kvorum.node.config.own_settings import OwnSettings
from kvorum.node.config.security import SecuritySettings
from kvorum.node.config.settings import (
    BrokerSettings,
    GroupSettings,
    LogSettings,
    MetadataLogSettings,
    NetworkSettings,
    PolicySettings,
    QuorumSettings,
    ReplicationSettings,
    ShareStateSettings,
    TopicSettings,
    TransactionSettings,
    network_settings,
)
from kvorum.node.config.values import NodeValues
from kvorum.security.sasl_settings import SaslLoginSettings, SaslSettings
from kvorum.security.ssl_settings import SslSettings
from kvorum.storage.errors import PropertiesFormatError
from kvorum.storage.small_files.java_properties import load_java_properties


class ProcessRole(Enum):
    """The role of a process in the cluster: broker or controller."""

    BROKER = "broker"
    CONTROLLER = "controller"


def _roles(words: tuple[str, ...]) -> frozenset[ProcessRole]:
    return frozenset(map(ProcessRole, words))


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node's configuration: Kafka's keys, with Kafka's defaults and checks.

    `texts` are the node's own settings as written (with broker.id and node.id filled in from each
    other), which DescribeConfigs shows as static. `warnings` are problems that Kafka logs without
    refusing the start. `sasl` and `ssl` are by the name of a listener, `logins` by the name of the
    listener of other nodes.
    """

    node_id: Annotated[int, "node.id", "broker.id"]
    roles: Annotated[frozenset[ProcessRole], "process.roles", _roles]
    listeners: Listeners
    log_directories: Annotated[tuple[str, ...], "log.dirs", "log.dir"]
    metadata_log: MetadataLogSettings
    quorum: QuorumSettings
    broker: BrokerSettings
    logs: LogSettings
    replication: ReplicationSettings
    topics: TopicSettings
    groups: GroupSettings
    transactions: TransactionSettings
    share_state: ShareStateSettings
    share_fetch: ShareFetchSettings
    policies: PolicySettings
    network: NetworkSettings
    security: SecuritySettings
    sasl: Mapping[str, SaslSettings]
    logins: Mapping[str, SaslLoginSettings]
    ssl: Mapping[str, SslSettings]
    own: OwnSettings
    enable_unstable_api_versions: Annotated[bool, "unstable.api.versions.enable"]
    enable_unstable_feature_versions: Annotated[bool, "unstable.feature.versions.enable"]
    texts: Mapping[str, str]
    warnings: tuple[str, ...]
    _value_of: ValueOf = field(repr=False, compare=False)

    @property
    def is_broker(self) -> bool:
        """Whether this node has the broker role."""
        return ProcessRole.BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        """Whether this node has the controller role."""
        return ProcessRole.CONTROLLER in self.roles

    def read(self, settings: type[Settings], **given: object) -> Settings:
        """Return the settings class of a component, with its fields that are no keys `given`."""
        return read_settings(settings, self._value_of, **given)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, must_be_servable: bool = True
    ) -> NodeConfig:
        """Read and check the texts of a properties file; raises ConfigError with Kafka's message.

        Without `must_be_servable`, listeners that only Kafka can serve are accepted too, for tools
        that only read the node's directories.
        """
        texts = MappingProxyType(with_id_synonyms(properties))
        values = NodeValues(texts)
        listeners = parse_node_listeners(values)
        quorum = read_settings(QuorumSettings, values.value_of)
        warnings = check_node(values, listeners=listeners, quorum=quorum)
        sasl = sasl_of_listeners(values, listeners)
        logins = logins_between_nodes(values, listeners)
        if must_be_servable:
            check_sasl_can_be_served(values, sasl)
            check_can_log_in(values, listeners, logins)
            check_authorizer(values)
            check_assignors_can_be_served(values)
        return read_settings(
            cls,
            values.value_of,
            listeners=listeners,
            quorum=quorum,
            network=network_settings(values, listeners),
            sasl=sasl,
            logins=logins,
            ssl=ssl_of_listeners(values, listeners),
            texts=texts,
            warnings=warnings,
            _value_of=values.value_of,
        )


def with_id_synonyms(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the texts with ``node.id`` and ``broker.id`` filled in from each other."""
    texts = dict(properties)
    if "node.id" in texts:
        texts.setdefault("broker.id", texts["node.id"])
    elif "broker.id" in texts:
        texts["node.id"] = texts["broker.id"]
    return texts


def load_properties(path: Path | str) -> dict[str, str]:
    """Read a Java properties file; raises ConfigError with the reason in one line."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration file {path}: {error.strerror}") from error
    try:
        return load_java_properties(data)
    except PropertiesFormatError as error:
        raise ConfigError(f"Malformed configuration file {path}: {error}") from error


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Read ``key=value`` arguments; the first ``=`` separates key and value."""
    overrides: dict[str, str] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"Invalid override '{argument}': expected key=value")
        overrides[key.strip()] = value
    return overrides
