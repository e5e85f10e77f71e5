"""``version-mapping`` and ``feature-dependencies``: print tables of releases and features."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.metadata.config_definitions.java_text import java_trim, parse_java_integer
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import FEATURES, feature_from_name
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    metadata_version_from_level,
    metadata_version_from_text,
)
from kvorum.node.format import FormatError


def print_version_mapping(release_version: str | None) -> None:
    """Print the level of metadata.version and of each feature that goes with it."""
    text = release_version or LATEST_PRODUCTION_METADATA_VERSION.text
    try:
        version = metadata_version_from_text(text, allow_unstable=True)
    except UnknownFeatureError as error:
        raise FormatError(str(error)) from error
    print(f"{METADATA_VERSION_FEATURE}={int(version)} ({text})")
    for feature in FEATURES:
        print(f"{feature.name}={feature.default_level(version)}")


def print_feature_dependencies(arguments: Iterable[str]) -> None:
    """Print the features that each ``feature=level`` depends on."""
    for argument in arguments:
        name, equals, level_text = argument.partition("=")
        if not equals:
            raise FormatError(
                f"Invalid feature format: {argument}. Expected format: 'feature=version' "
                "(e.g. 'group.version=1')"
            )
        name, level_text = java_trim(name), java_trim(level_text)
        try:
            level = parse_java_integer(level_text, bits=16)
        except ValueError:
            raise FormatError(f"Invalid version format: {level_text} for feature {name}") from None
        if name == METADATA_VERSION_FEATURE:
            _print_metadata_version(level)
        else:
            _print_feature(name, level)


def _print_metadata_version(level: int) -> None:
    try:
        version = metadata_version_from_level(level)
    except UnknownFeatureError:
        raise FormatError(f"Unknown {METADATA_VERSION_FEATURE} {level}") from None
    print(f"{METADATA_VERSION_FEATURE}={level} ({version.text}) has no dependencies.")


def _print_feature(name: str, level: int) -> None:
    try:
        feature = feature_from_name(name)
    except UnknownFeatureError:
        raise FormatError(f"Unknown feature: {name}") from None
    try:
        dependencies = feature.level(level).dependencies
    except UnknownFeatureError:
        raise FormatError(f"Feature level {level} is not supported for feature {name}") from None
    if not dependencies:
        print(f"{name}={level} has no dependencies.")
        return
    print(f"{name}={level} requires:")
    for needed, needed_level in dependencies.items():
        suffix = ""
        if needed == METADATA_VERSION_FEATURE:
            suffix = f" ({metadata_version_from_level(needed_level).text})"
        print(f"    {needed}={needed_level}{suffix}")
