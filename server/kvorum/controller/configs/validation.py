"""The checks of a resource's values, in Kafka's order."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvorum.controller.policies import AlterConfigRequest
from kvorum.controller.policy_calls import ask_policy
from kvorum.controller.quorum_reassignment.quorum_targets import RefusedTargetError, check_targets
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.config_definitions import (
    InvalidConfigError,
    topic_defaults,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from kvorum.metadata.configs_image import ConfigResource, ResourceType
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.request_error import RequestError, invalid_request
from kvorum.metadata.target_voters import (
    TARGET_VOTERS,
    InvalidTargetVotersError,
    parse_target_voters,
)
from kvorum.metadata.topic_names import check_topic_name
from kvorum.wire.error_codes import ErrorCode

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
VALUE_LENGTH_MAX: Final = 32_767
COMMA: Final = re.compile(r"\s*,\s*")
INT32_MAX: Final = 2**31 - 1


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
    if not re.fullmatch(r"[+-]?[0-9]+", name, re.ASCII) or abs(int(name)) > INT32_MAX:
        raise invalid_request("Unable to parse broker name as a base 10 number.")
    if int(name) < 0:
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
