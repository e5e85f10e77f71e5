"""What takes configurations, quotas, credentials and features back between scripts."""

from __future__ import annotations

from tests.differential.bodies import features
from tests.differential.settings_view import SettingsView
from tests.differential.sides import NODE_ID, Side
from tests.differential.view import uuid_of

TOPIC, BROKER = 2, 4
DELETE = 1
KEPT_WHILE_ELR_IS_ON = "min.insync.replicas"
UPGRADE, DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def widen_controllers(side: Side) -> None:
    """Register controllers that only a script knows with all features, so that none is in the way.

    Nobody can take them away again.
    """
    for node_id in sorted(side.view.settings.controllers - {NODE_ID}):
        body = {
            "controllerId": node_id,
            "incarnationId": uuid_of(8, 9),
            "listeners": [],
            "features": features(),
        }
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
    """Remove what is set for brokers, groups and client metrics; topics are gone with theirs."""
    resources = [
        {
            "resourceType": kind,
            "resourceName": name,
            "configs": [
                {"name": key, "configOperation": DELETE, "value": None}
                for key in sorted(removable(side.view.settings, kind, name))
            ],
        }
        for kind, name in sorted(side.view.settings.configs)
        if kind != TOPIC
    ]
    wanted = [resource for resource in resources if resource["configs"]]
    if wanted:
        side.ask("IncrementalAlterConfigs", {"resources": wanted})


def removable(settings: SettingsView, kind: int, name: str) -> set[str]:
    """Return the keys that are set and that the controller lets go of."""
    keys = settings.configs[kind, name]
    if kind == BROKER and settings.features.get("eligible.leader.replicas.version"):
        return keys - {KEPT_WHILE_ELR_IS_ON}
    return keys


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
    deletions = [
        {"name": name, "mechanism": mechanism}
        for name, mechanism in sorted(side.view.settings.credentials)
    ]
    for deletion in deletions:
        side.ask("AlterUserScramCredentials", {"deletions": [deletion], "upsertions": []})
