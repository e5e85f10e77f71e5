"""Changes of a resource's configuration: from the operations of a request to records.

Resources are sorted out first; their values are checked in Kafka's order.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from kvorum.controller.policies import AlterConfigRequest, ask_policy
from kvorum.controller.quorum_reassignment.quorum_targets import RefusedTargetError, check_targets
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    CORDONED_LOG_DIRS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
    InvalidConfigError,
    convert_to_text,
    default_value,
    java_split,
    topic_defaults,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from kvorum.metadata.config_operation import Operation, parse_node_id
from kvorum.metadata.configs_image import ConfigResource, ResourceType
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access, config_refusal
from kvorum.metadata.topic_names import check_topic_name
from kvorum.metadata.voters import TARGET_VOTERS, InvalidTargetVotersError, parse_target_voters
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.config_record import ConfigRecord

KNOWN_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN}
VALUE_LENGTH_MAX: Final = 32_767
COMMA: Final = re.compile(r"\s*,\s*")


class _Resource(Protocol):
    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=_Resource)


def sort_out_resources(
    resources: Iterable[Resource],
) -> tuple[list[Resource], list[tuple[Resource, RequestError]]]:
    """Return the resources to change, and the refused ones with the reason.

    Unknown types and duplicate resources are refused; a duplicate resource gets one refusal,
    however often it is named.
    """
    named = list(resources)
    counts = Counter((resource.resource_type, resource.resource_name) for resource in named)
    accepted: list[Resource] = []
    refused: list[tuple[Resource, RequestError]] = []
    seen: set[tuple[int, str]] = set()
    for resource in named:
        key = (resource.resource_type, resource.resource_name)
        if resource.resource_type not in KNOWN_TYPES:
            text = f"Unknown resource type {resource.resource_type}."
            refused.append((resource, RequestError(ErrorCode.UNSUPPORTED_VERSION, text)))
        elif counts[key] == 1:
            accepted.append(resource)
        elif key not in seen:
            refused.append((resource, invalid_request("Duplicate resource.")))
        seen.add(key)
    return accepted, refused


def refused_resources(
    resources: Sequence[Resource], access: Access
) -> list[tuple[Resource, RequestError]]:
    """Return the forbidden resources among those that are valid and named once."""
    accepted, _others = sort_out_resources(resources)
    refused: list[tuple[Resource, RequestError]] = []
    for resource in accepted:
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            continue
        error = config_refusal(
            access,
            AclOperation.ALTER_CONFIGS,
            resource_type=resource.resource_type,
            name=resource.resource_name,
        )
        if error is not None:
            refused.append((resource, error))
    return refused


def resources_left(
    resources: Iterable[Resource], refused: Iterable[tuple[Resource, RequestError]]
) -> list[Resource]:
    """Return the resources that are not refused."""
    names = {(resource.resource_type, resource.resource_name) for resource, _ in refused}
    return [r for r in resources if (r.resource_type, r.resource_name) not in names]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The new value of one key; None removes the key."""

    name: str
    value: str | None


def check_changes(
    image: MetadataImage,
    resource: ConfigResource,
    altered: Sequence[ConfigChange],
    removed: Iterable[ConfigChange],
    *,
    is_new_resource: bool,
    context: ControllerRequestContext,
) -> None:
    """Raise `RequestError` unless the changes of the resource are valid.

    `altered` are the explicit changes of the request, `removed` the implied ones. A new resource is
    created by the same request, so its existence is not checked.
    """
    existing = dict(image.configs.of(*resource).items())
    wanted = dict(existing)
    spelled_out = {change.name: change.value for change in altered}
    for change in altered:
        _check_change(image, resource, change, existing, context)
        if change.value is None:
            wanted.pop(change.name, None)
        elif _java_length(change.value) > VALUE_LENGTH_MAX:
            raise _invalid_config(
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {VALUE_LENGTH_MAX} bytes."
            )
        else:
            wanted[change.name] = change.value
    for change in removed:
        _check_change(image, resource, change, existing, context)
        wanted.pop(change.name, None)
    _check_resource(resource, wanted, existing, context)
    if not is_new_resource:
        _check_existence(image, resource, context)
    _ask_policy(resource, spelled_out, context)


def _ask_policy(
    resource: ConfigResource, altered: Mapping[str, str | None], context: ControllerRequestContext
) -> None:
    """Raise `RequestError` where the operator's policy refuses the change."""
    policy = context.settings.alter_config_policy
    if policy is None:
        return
    wanted = AlterConfigRequest(
        resource_type=resource[0], resource_name=resource[1], configs=altered
    )
    ask_policy(lambda: policy.validate(wanted))


def _check_change(
    image: MetadataImage,
    resource: ConfigResource,
    change: ConfigChange,
    existing: Mapping[str, str],
    context: ControllerRequestContext,
) -> None:
    """Check the keys with their own rules."""
    if resource[0] != ResourceType.BROKER:
        return
    if change.name == TARGET_VOTERS:
        _check_target_voters(image, resource[1], change, context)
    if change.name == MIN_INSYNC_REPLICAS and image.features.is_elr_enabled:
        _check_min_insync_replicas(resource[1], change)
    if change.name == CORDONED_LOG_DIRS:
        _check_cordoned_log_dirs(image, change, existing, context)


def _check_target_voters(
    image: MetadataImage, broker_name: str, change: ConfigChange, context: ControllerRequestContext
) -> None:
    """Check the target voters by the rules of AlterPartitionReassignments (KIP-642)."""
    if change.value is None:
        # A leader that does not know the key may have let it through for a single broker.
        return
    if broker_name:
        raise _invalid_config(f"{TARGET_VOTERS} can only be set for the whole cluster.")
    try:
        check_targets(parse_target_voters(change.value), image, context.describe_quorum())
    except (InvalidTargetVotersError, RefusedTargetError) as error:
        raise _invalid_config(str(error)) from error


def _check_min_insync_replicas(broker_name: str, change: ConfigChange) -> None:
    if broker_name:
        raise _invalid_config(
            f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
        )
    if change.value is None:
        raise _invalid_config(
            f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
        )


def _check_cordoned_log_dirs(
    image: MetadataImage,
    change: ConfigChange,
    existing: Mapping[str, str],
    context: ControllerRequestContext,
) -> None:
    if not image.metadata_version.supports_cordoned_log_dirs:
        raise _invalid_config(
            f"The {CORDONED_LOG_DIRS} configuration value cannot be set because it requires "
            f"metadata.version >= {MetadataVersion.V4_3_IV0.text}"
        )
    if context.is_forwarded or not (change.value or "").strip():
        return
    # A broker checks these against its own directories before it forwards; they are unknown here.
    cordoned = existing.get(CORDONED_LOG_DIRS)
    current = () if cordoned is None else COMMA.split(cordoned.strip())
    if not set(COMMA.split((change.value or "").strip())) <= set(current):
        raise _invalid_config(
            f"When updating {CORDONED_LOG_DIRS} via controllers,  the new value must be a subset "
            "of the current configuration value."
        )


def _check_resource(
    resource: ConfigResource,
    wanted: Mapping[str, str],
    existing: Mapping[str, str],
    context: ControllerRequestContext,
) -> None:
    """Check the name of the resource and all its future values."""
    resource_type, name = resource
    static = context.settings.static_configs
    try:
        match resource_type:
            case ResourceType.TOPIC:
                if not name:
                    raise invalid_request("Default topic resources are not allowed.")
                check_topic_name(name)
                validate_topic_configs(
                    wanted,
                    existing=existing,
                    defaults=topic_defaults(static),
                    is_remote_storage_enabled=(
                        static.get("remote.log.storage.system.enable", "").lower() == "true"
                    ),
                )
            case ResourceType.BROKER:
                _check_broker_name(name)
            case ResourceType.CLIENT_METRICS:
                validate_client_metrics_configs(name, wanted)
            case ResourceType.GROUP:
                if not name:
                    raise invalid_request("Default group resources are not allowed.")
                validate_group_configs(wanted, broker_texts=static)
            case _:
                raise invalid_request(
                    f"Unexpected resource type {ResourceType(resource_type).name}."
                )
    except InvalidConfigError as error:
        if error.is_invalid_request:
            raise invalid_request(error.message) from error
        raise _invalid_config(error.message) from error


def _check_broker_name(name: str) -> None:
    if not name:
        return
    if parse_node_id(name, "Unable to parse broker name as a base 10 number.") < 0:
        raise invalid_request("Invalid negative broker ID.")


def _check_existence(
    image: MetadataImage, resource: ConfigResource, context: ControllerRequestContext
) -> None:
    resource_type, name = resource
    if resource_type == ResourceType.BROKER and name:
        known = {
            *image.cluster.brokers,
            *image.cluster.controllers,
            *context.settings.quorum_voter_ids,
        }
        if int(name) not in known:
            raise RequestError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")
    if resource_type == ResourceType.TOPIC and name not in image.topics.ids:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )


def _java_length(text: str) -> int:
    """Return the number of UTF-16 units of `text`: its length in Java."""
    return len(text) + sum(character > "\uffff" for character in text)


def _invalid_config(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_CONFIG, message)


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
