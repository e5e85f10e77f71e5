"""Changes of a resource's configuration: from the operations of a request to records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvorum.controller.configs.validation import ConfigChange, check_changes
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
    convert_to_text,
    default_value,
    java_split,
)
from kvorum.metadata.config_operation import Operation
from kvorum.metadata.configs_image import ConfigResource, ResourceType
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.config_record import ConfigRecord


@dataclass(frozen=True, slots=True)
class ConfigOperation:
    """One operation on one key."""

    name: str
    operation: Operation
    value: str | None


def incremental_changes(
    image: MetadataImage,
    resource: ConfigResource,
    operations: Iterable[ConfigOperation],
    *,
    context: ControllerRequestContext,
    is_new_resource: bool = False,
) -> list[RecordAndVersion]:
    """Return the records for `operations`; raise `RequestError` where one is refused."""
    current = image.configs.of(*resource)
    wanted = [
        ConfigChange(operation.name, _new_value(resource, operation, current.get(operation.name)))
        for operation in operations
    ]
    changes = [change for change in wanted if _is_written(resource, change, current)]
    check_changes(image, resource, changes, (), is_new_resource=is_new_resource, context=context)
    return [_record(resource, change) for change in changes]


def replacing_changes(
    image: MetadataImage,
    resource: ConfigResource,
    values: Mapping[str, str | None],
    *,
    context: ControllerRequestContext,
) -> list[RecordAndVersion]:
    """Return the records that make `values` the whole configuration; may raise `RequestError`."""
    current = image.configs.of(*resource)
    altered = [
        change
        for change in (ConfigChange(name, value) for name, value in values.items())
        if _is_written(resource, change, current)
    ]
    removed = [ConfigChange(name, None) for name in sorted(current) if name not in values]
    check_changes(image, resource, altered, removed, is_new_resource=False, context=context)
    return [_record(resource, change) for change in (*altered, *removed)]


def clear_elr_records(
    image: MetadataImage, records: Sequence[RecordAndVersion]
) -> list[RecordAndVersion]:
    """Return the records that changes of min.insync.replicas require while ELR is on.

    A replica that was eligible under the old minimum may not be under the new one.
    """
    if not image.features.is_elr_enabled:
        return []
    return [
        (
            ClearElrRecord(
                topic_name=(
                    message.resource_name if message.resource_type == ResourceType.TOPIC else ""
                )
            ),
            0,
        )
        for message, _ in records
        if isinstance(message, ConfigRecord) and message.name == MIN_INSYNC_REPLICAS
    ]


def _is_written(resource: ConfigResource, change: ConfigChange, current: Mapping[str, str]) -> bool:
    """Return whether a change needs a record: brokers reload their configuration with each one."""
    return resource[0] == ResourceType.BROKER or current.get(change.name) != change.value


def _record(resource: ConfigResource, change: ConfigChange) -> RecordAndVersion:
    return ConfigRecord(*resource, change.name, change.value), 0


def _new_value(
    resource: ConfigResource, operation: ConfigOperation, current: str | None
) -> str | None:
    match operation.operation:
        case Operation.SET:
            return operation.value
        case Operation.DELETE:
            return None
        case Operation.APPEND | Operation.SUBTRACT:
            return _edited_list(resource, operation, current)


def _edited_list(resource: ConfigResource, operation: ConfigOperation, current: str | None) -> str:
    definition = _definition(resource, operation.name)
    if definition is None or definition.type is not ConfigType.LIST:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.operation.name} to key {operation.name} because its type is not "
            "LIST.",
        )
    if current is None:
        current = None if definition.is_required else convert_to_text(default_value(definition))
    parts = [part for part in (current or "").split(",") if part]
    for value in java_split(operation.value or ""):
        if operation.operation is Operation.APPEND and value not in parts:
            parts.append(value)
        if operation.operation is Operation.SUBTRACT and value in parts:
            parts.remove(value)
    return ",".join(parts)


def _definition(resource: ConfigResource, name: str) -> ConfigDefinition | None:
    match resource[0]:
        case ResourceType.TOPIC:
            return TOPIC_CONFIGS.get(name)
        case ResourceType.BROKER:
            return BROKER_CONFIGS.get(name)
        case _:
            # Kafka's controller treats no key of other resources as a list, even if it is one.
            return None
