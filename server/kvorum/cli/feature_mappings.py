"""``version-mapping`` and ``feature-dependencies``, which two of Kafka's tools have.

Each of the tools has its own words for what is wrong.
"""

from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import FEATURES, feature_from_name
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    metadata_version_from_level,
    metadata_version_from_text,
)
from kvorum.wire.java_text import java_trim


class UnknownLevelError(UnknownFeatureError):
    """A known feature has no such level."""


def version_mapping_lines(release_version: str | None) -> list[str]:
    """Return the level of metadata.version and of each feature that goes with it.

    Without a version it is the latest for production. UnknownFeatureError for an unknown one.
    """
    text = LATEST_PRODUCTION_METADATA_VERSION.text if release_version is None else release_version
    version = metadata_version_from_text(text, allow_unstable=True)
    levels = (f"{feature.name}={feature.default_level(version)}" for feature in FEATURES)
    return [f"{METADATA_VERSION_FEATURE}={int(version)} ({text})", *levels]


def split_feature(argument: str) -> tuple[str, str] | None:
    """Return the trimmed parts of ``feature=level``; None without an equals sign."""
    name, equals, level = argument.partition("=")
    return (java_trim(name), java_trim(level)) if equals else None


def dependency_lines(name: str, level: int) -> list[str]:
    """Return what a feature at a level depends on.

    UnknownFeatureError for an unknown name, UnknownLevelError for an unknown level.
    """
    if name == METADATA_VERSION_FEATURE:
        try:
            text = metadata_version_from_level(level).text
        except UnknownFeatureError:
            raise UnknownFeatureError(f"Unknown {name} {level}") from None
        return [f"{name}={level} ({text}) has no dependencies."]
    try:
        feature = feature_from_name(name)
    except UnknownFeatureError:
        raise UnknownFeatureError(f"Unknown feature: {name}") from None
    try:
        dependencies = feature.level(level).dependencies
    except UnknownFeatureError as error:
        raise UnknownLevelError(str(error)) from None
    if not dependencies:
        return [f"{name}={level} has no dependencies."]
    needed = (_level_text(*dependency) for dependency in dependencies.items())
    return [f"{name}={level} requires:", *(f"    {text}" for text in needed)]


def _level_text(name: str, level: int) -> str:
    suffix = ""
    if name == METADATA_VERSION_FEATURE:
        suffix = f" ({metadata_version_from_level(level).text})"
    return f"{name}={level}{suffix}"
