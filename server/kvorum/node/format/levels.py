"""The metadata.version and the feature levels that a cluster is formatted with."""

from collections.abc import Mapping

from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import FEATURES, KRAFT_VERSION_FEATURE, check_dependencies
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    LATEST_TESTING_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MetadataVersion,
    metadata_version_from_level,
)
from kvorum.node.format.errors import FormatError

_NEEDED_FLAGS = "one of the flags --standalone, --initial-controllers, or --no-initial-controllers"


def effective_release_version(
    release_version: MetadataVersion | None, levels: Mapping[str, int], *, enable_unstable: bool
) -> MetadataVersion:
    """Return the requested metadata.version, or the latest; FormatError if it is not allowed."""
    if METADATA_VERSION_FEATURE in levels:
        if release_version is not None:
            raise FormatError(
                "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
            )
        release_version = _known_version(levels[METADATA_VERSION_FEATURE])
    if release_version is None:
        if enable_unstable:
            return LATEST_TESTING_METADATA_VERSION
        return LATEST_PRODUCTION_METADATA_VERSION
    if not enable_unstable and not release_version.is_production:
        raise FormatError(f"metadata.version {release_version.text} is not yet stable.")
    return release_version


def effective_feature_levels(
    levels: Mapping[str, int], release_version: MetadataVersion, *, has_dynamic_quorum: bool
) -> dict[str, int]:
    """Return the level of every feature by name, metadata.version included."""
    known = {feature.name: feature for feature in FEATURES}
    for name in sorted(levels):
        if name != METADATA_VERSION_FEATURE and name not in known:
            supported = ", ".join(sorted(known))
            raise FormatError(f"Unsupported feature: {name}. Supported features are: {supported}")
    wanted = {**levels, METADATA_VERSION_FEATURE: int(release_version)}
    for feature in FEATURES:
        if feature.name == KRAFT_VERSION_FEATURE:
            wanted[feature.name] = _kraft_version(
                levels.get(feature.name), has_dynamic_quorum=has_dynamic_quorum
            )
        else:
            wanted.setdefault(feature.name, feature.default_level(release_version))
    _check_levels(wanted)
    return dict(sorted(wanted.items()))


def _known_version(level: int) -> MetadataVersion:
    try:
        return metadata_version_from_level(level)
    except UnknownFeatureError as error:
        raise FormatError(str(error)) from error


def _check_levels(wanted: Mapping[str, int]) -> None:
    for name in sorted(wanted):
        if name == METADATA_VERSION_FEATURE:
            continue
        try:
            check_dependencies(name, wanted[name], wanted)
        except UnknownFeatureError as error:
            raise FormatError(str(error)) from error


def _kraft_version(given: int | None, *, has_dynamic_quorum: bool) -> int:
    """Return 1 for a dynamic quorum and 0 for a static one; FormatError for another request."""
    if given is None:
        return int(has_dynamic_quorum)
    if given == 0 and has_dynamic_quorum:
        raise FormatError(
            f"Cannot set kraft.version to 0 if controller.quorum.voters is empty and "
            f"{_NEEDED_FLAGS} is used. For dynamic controllers support, try removing the --feature "
            "flag for kraft.version."
        )
    if given != 0 and not has_dynamic_quorum:
        raise FormatError(
            f"Cannot set kraft.version to {given} unless controller.quorum.voters is empty and "
            f"{_NEEDED_FLAGS} is used. For dynamic controllers support, try using one of "
            "--standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
    return given
