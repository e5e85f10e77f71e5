"""``describe``, ``version-mapping`` and ``feature-dependencies``: what kafka-features prints."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.feature_calls import describe_features_call
from kvorum.cli.feature_mappings import dependency_lines, version_mapping_lines
from kvorum.cli.features_tool.levels import feature_level
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE, metadata_version_from_level


async def print_features(client: AdminClient, node_id: int | None) -> None:
    """Print the levels that a node supports, None for any node, and those in force."""
    if node_id is not None and node_id < 0:
        raise AdminError(f"Invalid node id {node_id}: must be non-negative.")
    info = await client.call(describe_features_call(node_id))
    epoch = "-" if info.epoch is None else info.epoch
    for name in sorted(info.supported):
        supported = info.supported[name]
        least, most, current = (
            f"{_level_text(name, level):<15}"
            for level in (supported.min, supported.max, info.finalized.get(name, 0))
        )
        print(
            f"Feature: {name:<40}  SupportedMinVersion: {least}  SupportedMaxVersion: {most}  "
            f"FinalizedVersionLevel: {current}  Epoch: {epoch}"
        )


def print_version_mapping(release_version: str | None) -> None:
    """Print the level of metadata.version and of each feature that goes with it."""
    try:
        lines = version_mapping_lines(release_version)
    except UnknownFeatureError as error:
        raise AdminError(str(error)) from error
    print("\n".join(lines))


def print_feature_dependencies(arguments: Iterable[str]) -> None:
    """Print the features that each ``feature=level`` depends on."""
    for argument in arguments:
        name, level = feature_level(argument)
        try:
            lines = dependency_lines(name, level)
        except UnknownFeatureError as error:
            raise AdminError(str(error)) from error
        print("\n".join(lines))


def _level_text(name: str, level: int) -> str:
    if name != METADATA_VERSION_FEATURE:
        return str(level)
    try:
        return metadata_version_from_level(level).text
    except UnknownFeatureError:
        return f"UNKNOWN {level}"
