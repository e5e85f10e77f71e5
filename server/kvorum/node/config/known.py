"""The keys of a properties file: with an effect, only accepted, or unknown."""

import re
from collections.abc import Iterable
from typing import Final

from kvorum.broker.add_partitions_to_txn import VERIFICATION_KEY
from kvorum.broker.dead_letter_queue.dead_letter_topic import DeadLetterQueueSettings
from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.topic_log_configs import PRODUCER_EXPIRATION
from kvorum.controller.controller_mutation_quota import MutationQuotas
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.config_definitions import broker_definition, keys_of
from kvorum.metadata.config_definitions.synonym_rows import TOPIC_SYNONYMS
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from kvorum.node.config.assignors import SHARE_ASSIGNORS
from kvorum.node.config.listener_sasl import CALLBACK_HANDLER, JAAS_CONFIG, MechanismsBetweenNodes
from kvorum.node.config.listeners import ListenerKeys
from kvorum.node.config.node_config import NodeConfig
from kvorum.node.config.settings import CONNECTION_RATE, CONNECTIONS_MAX
from kvorum.node.config.values import NODE_CONFIGS, mechanism_key
from kvorum.raft.config import RaftConfig
from kvorum.security.oauth_login_settings import OAuthLoginSettings
from kvorum.security.sasl_login_modules import SERVED_MECHANISMS
from kvorum.security.sasl_settings import MechanismSettings, SaslSettings
from kvorum.security.ssl_settings import SslSettings
from kvorum.storage.directory.log_manager import LogManagerSettings
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig

_KEYS_BY_LISTENER = (
    keys_of(SaslSettings)
    | keys_of(SslSettings)
    | keys_of(MechanismSettings)
    | keys_of(OAuthLoginSettings)
    | {
        mechanism_key(mechanism, key)
        for mechanism in SERVED_MECHANISMS
        for key in (
            *(JAAS_CONFIG, CALLBACK_HANDLER),
            *keys_of(MechanismSettings),
            *keys_of(OAuthLoginSettings),
        )
    }
    | {CONNECTION_RATE, CONNECTIONS_MAX}
)
_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.")
TOPIC_KEYS_IN_USE: Final = keys_of(TopicLogConfig) | {MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION}
"""The topic keys with an effect that a node's file can have defaults for, and others."""
SETTINGS: Final[tuple[type, ...]] = (
    ControllerSettings,
    DeadLetterQueueSettings,
    FetcherSettings,
    ListenerKeys,
    LogManagerSettings,
    MechanismSettings,
    MechanismsBetweenNodes,
    MutationQuotas,
    NodeConfig,
    OAuthLoginSettings,
    RaftConfig,
    SaslSettings,
    SslSettings,
)
"""The settings classes that are read from a node's keys; those of their fields are too."""
KEYS_IN_USE: Final = (
    frozenset[str]().union(*map(keys_of, SETTINGS))
    | {PRODUCER_EXPIRATION, SHARE_ASSIGNORS, VERIFICATION_KEY}
    | {name for key in TOPIC_KEYS_IN_USE for name, _ in TOPIC_SYNONYMS.get(key, ())}
)
"""The keys whose value changes the behaviour or the responses of a node."""


def known_but_unused(names: Iterable[str]) -> tuple[str, ...]:
    """Return, sorted, the keys that Kafka knows and that have no effect here."""
    unused = set(names) - KEYS_IN_USE
    return tuple(sorted(name for name in unused if _is_known(name) and not _is_listeners(name)))


def _is_listeners(name: str) -> bool:
    """Return whether a key sets, for one listener, a value that kvorum uses per listener."""
    prefix = _LISTENER_KEY.match(name)
    return prefix is not None and name[prefix.end() :] in _KEYS_BY_LISTENER


def unknown(names: Iterable[str]) -> tuple[str, ...]:
    """Return, sorted, the keys that neither Kafka nor kvorum knows."""
    return tuple(sorted(name for name in names if not _is_known(name)))


def _is_known(name: str) -> bool:
    # A plug-in of a listener has keys of its own, so the prefix is enough.
    is_of_listener = _LISTENER_KEY.match(name) is not None
    return name in NODE_CONFIGS or is_of_listener or broker_definition(name) is not None
