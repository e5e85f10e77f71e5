"""UpdateFeatures (57): raises or lowers finalized levels of features, all or none."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, check_record_count
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_message
from kvorum.metadata.configs_image import CLUSTER_RESOURCE, ResourceType
from kvorum.metadata.effective_configs import MIN_INSYNC_REPLICAS, static_min_insync_replicas
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import (
    DISABLED,
    ELR_VERSION_FEATURE,
    KRAFT_VERSION_FEATURE,
    check_dependencies,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.java_hash import hash_table_order
from kvorum.metadata.metadata_version import (
    LATEST_TESTING_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MINIMUM_METADATA_VERSION,
    MetadataVersion,
    metadata_changed_between,
)
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

LAST_VERSION_WITH_RESULTS = 1
"""The last version whose response has a result for each feature."""


@unique
class UpgradeType(IntEnum):
    """The upgrade types of the request, with their numbers."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class _Update:
    """The requested level of one feature."""

    name: str
    level: int
    upgrade_type: UpgradeType


def update_features(
    image: MetadataImage, request: UpdateFeaturesRequest, context: ControllerRequestContext
) -> ControllerResult[UpdateFeaturesResponse]:
    """Change every feature in the request, or none if one of them cannot change.

    Of several updates of the same feature the last one applies.
    """
    by_name = {
        update.feature: _Update(
            update.feature, update.max_version_level, _upgrade_type(update.upgrade_type)
        )
        for update in request.feature_updates
    }
    updates = [by_name[name] for name in hash_table_order(by_name)]
    wanted = {update.name: update.level for update in updates}
    proposed = image.features.all_levels() | wanted
    records: list[RecordAndVersion] = []
    for update in updates:
        try:
            records.extend(_update_feature(image, update, proposed, context))
        except RequestError as error:
            return ControllerResult(_failure(error))
    if any(update.name == ELR_VERSION_FEATURE and update.level > 0 for update in updates):
        records = [*elr_safety_records(image, context), *records]
    check_record_count(records)
    response = _success(request, context.api_version)
    if request.validate_only:
        return ControllerResult(response)
    return ControllerResult(
        response, tuple(records), kraft_version=wanted.get(KRAFT_VERSION_FEATURE)
    )


def _upgrade_type(code: int) -> UpgradeType:
    return UpgradeType(code) if code in list(UpgradeType) else UpgradeType.UNKNOWN


def _failure(error: RequestError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=error.code,
        error_message=(
            "The update failed for all features since the following feature had an error: "
            f"{error.message}"
        ),
    )


def _success(request: UpdateFeaturesRequest, api_version: int) -> UpdateFeaturesResponse:
    response = UpdateFeaturesResponse(error_code=ErrorCode.NONE, error_message=None)
    if api_version <= LAST_VERSION_WITH_RESULTS:
        response.results = [
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_code=ErrorCode.NONE, error_message=ErrorCode.NONE.name
            )
            for update in request.feature_updates
        ]
    return response


def _update_feature(
    image: MetadataImage,
    update: _Update,
    proposed: Mapping[str, int],
    context: ControllerRequestContext,
) -> list[RecordAndVersion]:
    if update.upgrade_type is UpgradeType.UNKNOWN:
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    reason = reason_not_supported(image, update.name, update.level, context)
    if reason is not None:
        raise _invalid(update, reason)
    is_kraft_version = update.name == KRAFT_VERSION_FEATURE
    current = context.kraft_version if is_kraft_version else image.features.level(update.name)
    _check_direction(update, current)
    if is_kraft_version:
        return _update_kraft_version(update, current, context)
    if update.name == METADATA_VERSION_FEATURE:
        _check_metadata_version(image.metadata_version, update)
    else:
        try:
            check_dependencies(update.name, update.level, proposed)
        except UnknownFeatureError as error:
            raise _invalid(update, str(error)) from error
    return [(FeatureLevelRecord(name=update.name, feature_level=update.level), 0)]


def _check_direction(update: _Update, current: int) -> None:
    if update.level < current and update.upgrade_type is UpgradeType.UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if update.level > current and update.upgrade_type is not UpgradeType.UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")


def _update_kraft_version(
    update: _Update, current: int, context: ControllerRequestContext
) -> list[RecordAndVersion]:
    """Accept a kraft.version that the quorum supports; the quorum itself writes it.

    The record exists so that the response has a record to wait for.
    """
    if update.upgrade_type is not UpgradeType.UPGRADE:
        if update.level != current:
            raise _invalid(update, "Can't downgrade the version of this feature.")
        return []
    problem = context.kraft_upgrade_problem(update.level)
    if problem is not None:
        raise RequestError(ErrorCode.INVALID_UPDATE_VERSION, problem)
    return [(NoOpRecord(), 0)]


def _check_metadata_version(current: MetadataVersion, update: _Update) -> None:
    try:
        wanted = MetadataVersion(update.level)
    except ValueError:
        raise RequestError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid metadata.version {update.level}. Valid versions are from "
            f"{int(MINIMUM_METADATA_VERSION)} to {int(LATEST_TESTING_METADATA_VERSION)}.",
        ) from None
    if wanted >= current or not metadata_changed_between(current, wanted):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.upgrade_type is UpgradeType.UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata "
        "information."
    )
    raise RequestError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {int(current)} to {int(wanted)}. {reason}",
    )


def reason_not_supported(
    image: MetadataImage, name: str, level: int, context: ControllerRequestContext
) -> str | None:
    """Return a node that does not support `level` of the feature `name`, or None."""
    settings = context.settings
    local = settings.supported_features.get(name, DISABLED)
    nodes = [(f"Local controller {settings.node_id}", local)]
    nodes += [
        (f"Broker {broker.id}", broker.supported_features.get(name, DISABLED))
        for broker in image.cluster.sorted_brokers()
    ]
    controllers = image.cluster.controllers
    are_controllers_known = image.metadata_version.supports_controller_registration
    if are_controllers_known:
        nodes += [
            (f"Controller {node_id}", controllers[node_id].supported_features.get(name, DISABLED))
            for node_id in sorted(controllers)
            if node_id != settings.node_id
        ]
    for what, supported in nodes:
        if level not in supported:
            if supported.max == 0:
                return f"{what} does not support this feature."
            return f"{what} only supports versions {supported}"
    if are_controllers_known:
        for node_id in settings.quorum_voter_ids:
            if node_id != settings.node_id and node_id not in controllers:
                return f"controller {node_id} has not registered, and may not support this feature"
    return None


def elr_safety_records(
    image: MetadataImage, context: ControllerRequestContext
) -> list[RecordAndVersion]:
    """Return the records that make min.insync.replicas the same on all brokers, as ELR needs it."""
    records: list[RecordAndVersion] = []
    if MIN_INSYNC_REPLICAS not in image.configs.of_cluster():
        value = str(static_min_insync_replicas(context.settings.static_configs))
        records.append((ConfigRecord(*CLUSTER_RESOURCE, MIN_INSYNC_REPLICAS, value), 0))
    broker_ids = {
        int(name)
        for resource_type, name in image.configs.resources
        if resource_type == ResourceType.BROKER and name
    }
    # Ids in another spelling, such as 01, are ignored, as in Kafka.
    records.extend(
        (ConfigRecord(ResourceType.BROKER, name, MIN_INSYNC_REPLICAS, None), 0)
        for name in map(str, sorted(broker_ids))
        if MIN_INSYNC_REPLICAS in image.configs.of(ResourceType.BROKER, name)
    )
    return records


def _invalid(update: _Update, reason: str) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.name}. {reason}",
    )


API: Final = ControllerApi(
    request=UpdateFeaturesRequest,
    permission=AclOperation.ALTER,
    decide=update_features,
    refuse=refused_by_message(UpdateFeaturesResponse),
)
