"""Names and texts of configuration resources, access control entries and quotas in rows."""

from __future__ import annotations

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AccessControlEntry
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
from kvorum.spark.history.state_rows import AclRow
from kvorum.wire.uuid_text import uuid_to_text


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


def acl_row(entry_id: bytes, entry: AccessControlEntry) -> AclRow:
    """Return an access control entry; a row of a change has the same columns behind its own."""
    return AclRow(
        acl_id=uuid_to_text(entry_id),
        resource_type=AclResourceType(entry.resource_type).name,
        resource_name=entry.resource_name,
        pattern_type=PatternType(entry.pattern_type).name,
        principal=entry.principal,
        host=entry.host,
        operation=AclOperation(entry.operation).name,
        permission_type=PermissionType(entry.permission_type).name,
    )


def entity_columns(entity: QuotaEntity) -> tuple[QuotaEntityColumn, ...]:
    """Return the parts of a quota's entity, by type."""
    return tuple(QuotaEntityColumn(kind, name) for kind, name in entity)
