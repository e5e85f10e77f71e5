"""``upgrade``, ``downgrade`` and ``disable``: what kafka-features asks for and prints."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import AdminError, CallFailedError, Failure
from kvorum.cli.admin.feature_calls import update_features_call
from kvorum.cli.features_tool.levels import levels_asked_for, levels_of_release, levels_to_disable
from kvorum.controller.apis.update_features import UpgradeType
from kvorum.controller.java_order import hash_table_order
from kvorum.metadata.config_definitions.java_text import java_trim


async def update_features(client: AdminClient, arguments: argparse.Namespace) -> None:
    """Change the levels that the command line asks for, and print the result for each feature."""
    levels = _levels(arguments)
    operation: str = arguments.command
    if not levels:
        raise AdminError(f"You must specify at least one feature to {operation}")
    if not all(map(java_trim, levels)):
        raise AdminError("Provided feature can not be empty.")
    failures = await _failures(client, levels, arguments)
    for name in sorted(levels):
        print(_result(arguments, name, levels[name], failures[name]))
    failed_count = sum(failure is not None for failure in failures.values())
    if failed_count:
        raise AdminError(f"{failed_count} out of {len(levels)} operation(s) failed.")


def _levels(arguments: argparse.Namespace) -> dict[str, int]:
    features: list[str] = arguments.feature or []
    if arguments.command == "disable":
        return levels_to_disable(features)
    if arguments.release_version is None:
        return levels_asked_for(arguments.metadata, features)
    if arguments.metadata is not None or arguments.feature is not None:
        raise AdminError("Can not specify `release-version` with other feature flags.")
    is_upgrade = arguments.command == "upgrade"
    return levels_of_release(arguments.release_version, is_upgrade=is_upgrade)


async def _failures(
    client: AdminClient, levels: Mapping[str, int], arguments: argparse.Namespace
) -> Mapping[str, Failure | None]:
    """Ask for the change; a request that fails as a whole fails for each feature."""
    # The order decides which of several errors the controller names.
    ordered = {name: levels[name] for name in hash_table_order(levels)}
    call = update_features_call(ordered, _upgrade_type(arguments), is_dry_run=arguments.dry_run)
    try:
        return await client.call(call)
    except CallFailedError as error:
        return dict.fromkeys(levels, error.failure)


def _upgrade_type(arguments: argparse.Namespace) -> UpgradeType:
    if arguments.command == "upgrade":
        return UpgradeType.UPGRADE
    return UpgradeType.UNSAFE_DOWNGRADE if arguments.unsafe else UpgradeType.SAFE_DOWNGRADE


def _result(arguments: argparse.Namespace, name: str, level: int, failure: Failure | None) -> str:
    operation: str = arguments.command
    is_disabled = operation == "disable"
    if failure is not None:
        begin = "Can not" if arguments.dry_run else "Could not"
        target = "" if is_disabled else f" to {level}"
        return f"{begin} {operation} {name}{target}. {failure.text}"
    verb = "can be" if arguments.dry_run else "was"
    done = "disabled" if is_disabled else f"{operation}d to {level}"
    return f"{name} {verb} {done}."
