"""``version-mapping`` and ``feature-dependencies`` with the messages of kafka-storage."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.cli.feature_mappings import (
    UnknownLevelError,
    dependency_lines,
    split_feature,
    version_mapping_lines,
)
from kvorum.metadata.config_definitions.java_text import parse_java_integer
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.node.format import FormatError


def print_version_mapping(release_version: str | None) -> None:
    """Print the level of metadata.version and of each feature that goes with it."""
    try:
        lines = version_mapping_lines(release_version)
    except UnknownFeatureError as error:
        raise FormatError(str(error)) from error
    print("\n".join(lines))


def print_feature_dependencies(arguments: Iterable[str]) -> None:
    """Print the features that each ``feature=level`` depends on."""
    for argument in arguments:
        name, level = _feature_level(argument)
        try:
            lines = dependency_lines(name, level)
        except UnknownLevelError:
            problem = f"Feature level {level} is not supported for feature {name}"
            raise FormatError(problem) from None
        except UnknownFeatureError as error:
            raise FormatError(str(error)) from error
        print("\n".join(lines))


def _feature_level(argument: str) -> tuple[str, int]:
    parts = split_feature(argument)
    if parts is None:
        raise FormatError(
            f"Invalid feature format: {argument}. Expected format: 'feature=version' "
            "(e.g. 'group.version=1')"
        )
    name, level_text = parts
    try:
        return name, parse_java_integer(level_text, bits=16)
    except ValueError:
        raise FormatError(f"Invalid version format: {level_text} for feature {name}") from None
