"""The levels that a command line asks for."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.cli.admin.errors import AdminError
from kvorum.cli.feature_mappings import split_feature
from kvorum.metadata.config_definitions.java_text import parse_java_integer
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import FEATURES
from kvorum.metadata.metadata_version import (
    METADATA_VERSION_FEATURE,
    MetadataVersion,
    metadata_version_from_text,
)


def feature_level(argument: str) -> tuple[str, int]:
    """Return the parts of ``feature=level``; AdminError with kafka-features' message."""
    begin = f"Can't parse feature=level string {argument}:"
    parts = split_feature(argument)
    if parts is None:
        raise AdminError(f"{begin} equals sign not found.")
    name, level_text = parts
    try:
        return name, parse_java_integer(level_text, bits=16)
    except ValueError:
        raise AdminError(f"{begin} unable to parse {level_text} as a short.") from None


def levels_of_release(text: str, *, is_upgrade: bool) -> dict[str, int]:
    """Return the level of each feature that goes with a release.

    An upgrade leaves out the features that the release has at level 0.
    """
    version = _metadata_version(text)
    levels = {METADATA_VERSION_FEATURE: int(version)}
    for feature in FEATURES:
        level = feature.default_level(version)
        if level > 0 or not is_upgrade:
            levels[feature.name] = level
    return levels


def levels_asked_for(metadata: str | None, features: Iterable[str]) -> dict[str, int]:
    """Return the levels that ``--metadata`` and each ``--feature`` ask for."""
    levels: dict[str, int] = {}
    if metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION_FEATURE] = int(_metadata_version(metadata))
    for argument in features:
        _add(levels, *feature_level(argument))
    return levels


def levels_to_disable(names: Iterable[str]) -> dict[str, int]:
    """Return the level 0 for each of the features."""
    levels: dict[str, int] = {}
    for name in names:
        _add(levels, name, 0)
    return levels


def _add(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise AdminError(f"Feature {name} was specified more than once.")
    levels[name] = level


def _metadata_version(text: str) -> MetadataVersion:
    try:
        return metadata_version_from_text(text, allow_unstable=True)
    except UnknownFeatureError as error:
        raise AdminError(str(error)) from error
