"""The resets that put a side back between scripts, from what its own log says."""

from collections.abc import Callable
from typing import Final

from tests.interop.differential.bodies import features
from tests.interop.differential.settings_view import SettingsView
from tests.interop.differential.sides import NODE_ID, Side
from tests.interop.differential.view import uuid_of

from kvorum.wire.json_form import Json


def delete_topics(side: Side) -> None:
    """Delete all topics."""
    topics = [{"name": None, "topicId": topic_id} for topic_id in side.view.topic_ids.values()]
    if topics:
        side.ask("DeleteTopics", {"topics": topics, "timeoutMs": 60_000})


def unregister_brokers(side: Side) -> None:
    """Unregister all brokers."""
    for broker in sorted(side.view.epochs):
        side.ask("UnregisterBroker", {"brokerId": broker})


TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
KEPT_WHILE_ELR_IS_ON = "min.insync.replicas"
UPGRADE, DOWNGRADE = 1, 2


def widen_controllers(side: Side) -> None:
    """Register controllers that only a script knows with all features, so that none is in the way.

    Nobody can take them away again.
    """
    for node_id in sorted(side.view.settings.controllers - {NODE_ID}):
        body = {"controllerId": node_id, "incarnationId": uuid_of(8, 9), "features": features()}
        side.ask("ControllerRegistration", body)


def restore_features(side: Side) -> None:
    """Finalize the levels again that the side began with."""
    settings = side.view.settings
    for name, level in sorted(settings.first_features.items()):
        current = settings.features.get(name, 0)
        if current != level:
            _finalize(side, name, level, is_upgrade=level > current)
    for name, level in sorted(settings.features.items()):
        if level and name not in settings.first_features:
            _finalize(side, name, 0, is_upgrade=False)


def _finalize(side: Side, name: str, level: int, *, is_upgrade: bool) -> None:
    upgrade_type = UPGRADE if is_upgrade else DOWNGRADE
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": upgrade_type}
    side.ask("UpdateFeatures", {"featureUpdates": [update], "timeoutMs": 60_000})


def remove_configs(side: Side) -> None:
    """Remove what is set for brokers, groups and client metrics; topics are gone with theirs.

    What must stay is set to its default: real Kafka takes min.insync.replicas with blanks around
    the number, and fails over it from then on.
    """
    settings = side.view.settings
    wanted = [
        {
            "resourceType": kind,
            "resourceName": name,
            "configs": [_reset(settings, kind, key) for key in sorted(keys)],
        }
        for (kind, name), keys in sorted(settings.configs.items())
        if kind != TOPIC and keys
    ]
    if wanted:
        side.ask("IncrementalAlterConfigs", {"resources": wanted})


def _reset(settings: SettingsView, kind: int, key: str) -> dict[str, Json]:
    is_elr_on = settings.features.get("eligible.leader.replicas.version")
    if kind == BROKER and key == KEPT_WHILE_ELR_IS_ON and is_elr_on:
        return {"name": key, "configOperation": SET, "value": "1"}
    return {"name": key, "configOperation": DELETE, "value": None}


def remove_quotas(side: Side) -> None:
    """Remove all client quotas."""
    entries = [
        {
            "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
            "ops": [{"key": key, "value": 0.0, "remove": True} for key in sorted(keys)],
        }
        for entity, keys in side.view.settings.quotas.items()
        if keys
    ]
    if entries:
        side.ask("AlterClientQuotas", {"entries": entries})


def remove_credentials(side: Side) -> None:
    """Remove all SCRAM credentials."""
    for name, mechanism in sorted(side.view.settings.credentials):
        deletion = {"name": name, "mechanism": mechanism}
        side.ask("AlterUserScramCredentials", {"deletions": [deletion], "upsertions": []})


RESETS: Final[tuple[Callable[[Side], None], ...]] = (
    delete_topics,
    unregister_brokers,
    widen_controllers,
    restore_features,
    remove_configs,
    remove_quotas,
    remove_credentials,
)
