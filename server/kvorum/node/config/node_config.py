"""The whole configuration of a node, from its properties file and the command line's overrides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from kvorum.node.config import known
from kvorum.node.config.checks import check_can_be_served, check_node
from kvorum.node.config.errors import ConfigError
from kvorum.node.config.group_settings import GroupSettings, group_settings
from kvorum.node.config.listener import Listener
from kvorum.node.config.listeners import Listeners, parse_node_listeners
from kvorum.node.config.own_settings import OwnSettings, own_settings
from kvorum.node.config.security import SecuritySettings, security_settings
from kvorum.node.config.settings import (
    BrokerSettings,
    LogSettings,
    MetadataLogSettings,
    MutationQuotaSettings,
    NetworkSettings,
    PolicySettings,
    QuorumSettings,
    ReplicationSettings,
    TopicSettings,
    TransactionSettings,
    broker_settings,
    log_settings,
    metadata_log_settings,
    mutation_quota_settings,
    network_settings,
    policy_settings,
    quorum_settings,
    replication_settings,
    topic_settings,
    transaction_settings,
)
from kvorum.node.config.values import BrokerValues
from kvorum.storage.errors import PropertiesFormatError
from kvorum.storage.small_files.java_properties import load_java_properties


class ProcessRole(Enum):
    """The role of a process in the cluster: broker or controller."""

    BROKER = "broker"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node's configuration: Kafka's keys, with Kafka's defaults and checks.

    `texts` are the node's own settings as written (with broker.id and node.id filled in from each
    other), which DescribeConfigs shows as static. `warnings` are problems that Kafka logs without
    refusing the start. `known_but_unused` are keys that Kafka knows and kvorum does not act on,
    `unknown` are keys that neither knows.
    """

    node_id: int
    roles: frozenset[ProcessRole]
    listeners: Listeners
    log_directories: tuple[str, ...]
    metadata_log: MetadataLogSettings
    quorum: QuorumSettings
    broker: BrokerSettings
    logs: LogSettings
    replication: ReplicationSettings
    topics: TopicSettings
    groups: GroupSettings
    transactions: TransactionSettings
    mutation_quota: MutationQuotaSettings
    policies: PolicySettings
    network: NetworkSettings
    security: SecuritySettings
    own: OwnSettings
    enable_unstable_api_versions: bool
    enable_unstable_feature_versions: bool
    texts: Mapping[str, str]
    warnings: tuple[str, ...]
    known_but_unused: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_broker(self) -> bool:
        """Whether this node has the broker role."""
        return ProcessRole.BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        """Whether this node has the controller role."""
        return ProcessRole.CONTROLLER in self.roles

    @property
    def bound_listeners(self) -> tuple[Listener, ...]:
        """Every socket this node opens."""
        return self.listeners.bound

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, must_be_servable: bool = True
    ) -> NodeConfig:
        """Read and check the texts of a properties file; raises ConfigError with Kafka's message.

        Without `must_be_servable`, listeners that only Kafka can serve are accepted too, for tools
        that only read the node's directories.
        """
        texts = MappingProxyType(with_id_synonyms(properties))
        values = BrokerValues(texts)
        roles = frozenset(ProcessRole(word) for word in values.words("process.roles"))
        log_directories = values.optional_words("log.dirs") or values.words("log.dir")
        directory = values.optional_text("metadata.log.dir") or log_directories[0]
        listeners = parse_node_listeners(values)
        quorum = quorum_settings(values)
        warnings = check_node(
            values,
            role_names=frozenset(role.value for role in roles),
            listeners=listeners,
            quorum=quorum,
            log_directories=log_directories,
        )
        if must_be_servable:
            check_can_be_served(listeners)
        return cls(
            node_id=values.integer("node.id"),
            roles=roles,
            listeners=listeners,
            log_directories=log_directories,
            metadata_log=metadata_log_settings(values, directory=directory),
            quorum=quorum,
            broker=broker_settings(values),
            logs=log_settings(values),
            replication=replication_settings(values),
            topics=topic_settings(values),
            groups=group_settings(values),
            transactions=transaction_settings(values),
            mutation_quota=mutation_quota_settings(values),
            policies=policy_settings(values),
            network=network_settings(values, listeners),
            security=security_settings(values, must_be_servable=must_be_servable),
            own=own_settings(texts),
            enable_unstable_api_versions=values.boolean("unstable.api.versions.enable"),
            enable_unstable_feature_versions=values.boolean("unstable.feature.versions.enable"),
            texts=texts,
            warnings=warnings,
            known_but_unused=known.known_but_unused(properties),
            unknown=known.unknown(properties),
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
