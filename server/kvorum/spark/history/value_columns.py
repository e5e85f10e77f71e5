"""Names and texts of configuration resources, access control entries and quotas in rows."""

from __future__ import annotations

from kvorum.metadata.client_quotas_image import QuotaEntity
from kvorum.metadata.config_definitions import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    broker_definition,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.spark.history.columns import QuotaEntityColumn


def is_sensitive(resource_type: int, name: str) -> bool | None:
    """Return whether a configuration value must not be shown, None for an unknown key."""
    definition = _definition(resource_type, name)
    return None if definition is None else definition.is_sensitive


def _definition(resource_type: int, name: str) -> ConfigDefinition | None:
    match resource_type:
        case ResourceType.TOPIC:
            return TOPIC_CONFIGS.get(name)
        case ResourceType.BROKER:
            return broker_definition(name)
        case ResourceType.CLIENT_METRICS:
            return CLIENT_METRICS_CONFIGS.get(name)
        case ResourceType.GROUP:
            return GROUP_CONFIGS.get(name)
        case _:
            return None


def entity_columns(entity: QuotaEntity) -> tuple[QuotaEntityColumn, ...]:
    """Return the parts of a quota's entity, by type."""
    return tuple(QuotaEntityColumn(kind, name) for kind, name in entity)
