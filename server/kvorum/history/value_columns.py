"""Values of nodes, configurations, access control entries and quotas, as rows have them."""

from collections.abc import Iterable, Mapping

from kvorum.history.columns import EndpointColumn, FeatureRangeColumn, QuotaEntityColumn
from kvorum.history.tables import AclRow, BrokerState
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.cluster_image import BrokerRegistration, Endpoint
from kvorum.metadata.config_definitions import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    broker_definition,
)
from kvorum.metadata.configs_image import QuotaEntity, ResourceType
from kvorum.metadata.features import VersionRange
from kvorum.wire.uuid_text import uuid_to_text


def state_of(broker: BrokerRegistration) -> BrokerState:
    """Return the state of a registered broker."""
    if broker.is_fenced:
        return BrokerState.FENCED
    if broker.is_in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def endpoint_columns(endpoints: Iterable[Endpoint]) -> tuple[EndpointColumn, ...]:
    """Return endpoints in their order."""
    return tuple(
        EndpointColumn(each.listener, each.host, each.port, each.security_protocol)
        for each in endpoints
    )


def feature_columns(features: Mapping[str, VersionRange]) -> tuple[FeatureRangeColumn, ...]:
    """Return supported features by name."""
    return tuple(
        FeatureRangeColumn(name, range_.min, range_.max)
        for name, range_ in sorted(features.items())
    )


def log_dir_texts(directories: Iterable[bytes]) -> tuple[str, ...]:
    """Return directory ids as Kafka prints them."""
    return tuple(uuid_to_text(directory) for directory in directories)


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
    """Return an access control entry; a row of a change has the same columns after its own."""
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
