"""The keys of a properties file: with an effect, only accepted, or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kvorum.metadata.config_definitions import BROKER_CONFIGS, broker_definition, keys_of
from kvorum.metadata.config_definitions.synonym_rows import TOPIC_SYNONYMS
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from kvorum.node.config.own_settings import OWN_KEYS
from kvorum.node.config.security import AUTHORIZER_KEYS
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig

_KEYS_BY_LISTENER = frozenset({"max.connection.creation.rate"})
_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.")
TOPIC_KEYS_IN_USE: Final = keys_of(TopicLogConfig) | {MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION}
"""The topic keys with an effect that a node's file can have defaults for, and others."""
_TOPIC_DEFAULT_KEYS = frozenset(
    name for key in TOPIC_KEYS_IN_USE for name, _ in TOPIC_SYNONYMS.get(key, ())
)
_NODE_KEYS = frozenset(
    {
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "advertised.listeners",
        "alter.config.policy.class.name",
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "authorizer.class.name",
        "auto.create.topics.enable",
        "auto.leader.rebalance.enable",
        "broker.heartbeat.interval.ms",
        "broker.id",
        "broker.rack",
        "broker.session.timeout.ms",
        "connections.max.idle.ms",
        "controlled.shutdown.enable",
        "controller.listener.names",
        "controller.quorum.auto.join.enable",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.election.backoff.max.ms",
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.max.bytes",
        "controller.quorum.fetch.snapshot.max.bytes",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "controller.quorum.retry.backoff.ms",
        "controller.quorum.voters",
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
        "cordoned.log.dirs",
        "create.topic.policy.class.name",
        "default.replication.factor",
        "delegation.token.expiry.check.interval.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "delegation.token.secret.key",
        "delete.topic.enable",
        "fetch.max.bytes",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.max.size",
        "group.min.session.timeout.ms",
        "initial.broker.registration.timeout.ms",
        "inter.broker.listener.name",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "leader.imbalance.check.interval.seconds",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dir.failure.timeout.ms",
        "log.dirs",
        "log.flush.offset.checkpoint.interval.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.enable",
        "log.cleaner.io.buffer.load.factor",
        "log.retention.check.interval.ms",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.request.partition.size.limit",
        "max.incremental.fetch.session.cache.slots",
        "metadata.log.dir",
        "metadata.log.max.record.bytes.between.snapshots",
        "metadata.log.max.snapshot.interval.ms",
        "metadata.log.segment.bytes",
        "metadata.log.segment.ms",
        "metadata.max.idle.interval.ms",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
        "min.insync.replicas",
        "node.id",
        "num.partitions",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "offset.metadata.max.bytes",
        "offsets.commit.timeout.ms",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "offsets.topic.compression.codec",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "process.roles",
        "producer.id.expiration.ms",
        "quota.window.num",
        "quota.window.size.seconds",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.high.watermark.checkpoint.interval.ms",
        "replica.lag.time.max.ms",
        "replica.selector.class",
        "replica.socket.timeout.ms",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "request.timeout.ms",
        "security.inter.broker.protocol",
        "socket.listen.backlog.size",
        "socket.request.max.bytes",
        "transaction.partition.verification.enable",
        "unclean.leader.election.enable",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)

# Keys whose value changes the behaviour or the responses of a node.
KEYS_IN_USE = _NODE_KEYS | _TOPIC_DEFAULT_KEYS


def known_but_unused(names: Iterable[str]) -> tuple[str, ...]:
    """Return, sorted, the keys that Kafka knows and that have no effect here."""
    unused = set(names) - KEYS_IN_USE - OWN_KEYS - AUTHORIZER_KEYS
    return tuple(sorted(name for name in unused if _is_known(name) and not _is_listeners(name)))


def _is_listeners(name: str) -> bool:
    """Return whether a key sets, for one listener, a value that kvorum uses per listener."""
    prefix = _LISTENER_KEY.match(name)
    return prefix is not None and name[prefix.end() :] in _KEYS_BY_LISTENER


def unknown(names: Iterable[str]) -> tuple[str, ...]:
    """Return, sorted, the keys that neither Kafka nor kvorum knows."""
    return tuple(sorted(name for name in names if not _is_known(name)))


def _is_known(name: str) -> bool:
    if name in BROKER_CONFIGS or name in OWN_KEYS or name in AUTHORIZER_KEYS:
        return True
    # A plug-in of a listener has keys of its own, so the prefix is enough.
    return bool(_LISTENER_KEY.match(name)) or broker_definition(name) is not None
