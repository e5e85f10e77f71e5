"""What puts a side back between scripts, from what its own log says."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from tests.interop.differential.settings_resets import (
    remove_configs,
    remove_credentials,
    remove_quotas,
    restore_features,
    widen_controllers,
)
from tests.interop.differential.sides import Side

FIRST_LEVELS: Final = MappingProxyType({"eligible.leader.replicas.version": 1})
UPGRADE, SAFE_DOWNGRADE = 1, 2


def delete_topics(side: Side) -> None:
    """Delete all topics."""
    topics = [
        {
            "name": None,
            "topicId": topic_id,
        }
        for topic_id in side.view.topic_ids.values()
    ]
    if topics:
        side.ask("DeleteTopics", {"topics": topics, "timeoutMs": 60_000})


def unregister_brokers(side: Side) -> None:
    """Unregister all brokers."""
    for broker in sorted(side.view.epochs):
        side.ask("UnregisterBroker", {"brokerId": broker})


RESETS: Final[tuple[Callable[[Side], None], ...]] = (
    delete_topics,
    unregister_brokers,
    widen_controllers,
    restore_features,
    remove_configs,
    remove_quotas,
    remove_credentials,
)
