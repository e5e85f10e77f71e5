"""``kvorum features``: describe and change the levels of features, as kafka-features does."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.command import client_properties, exit_code, print_warning
from kvorum.cli.admin.errors import AdminError, CallFailedError, Failure
from kvorum.cli.admin.feature_calls import describe_features_call, update_features_call
from kvorum.cli.admin.nodes import AdminSettings, admin_settings
from kvorum.cli.feature_mappings import dependency_lines, split_feature, version_mapping_lines
from kvorum.cli.kafka_arguments import (
    CONNECTION_EPILOG,
    KafkaStyleParser,
    ToolParser,
    UsageError,
    java_integer,
    parse_in_kafkas_order,
)
from kvorum.cli.unparsed import accept_unparsed
from kvorum.controller.apis.update_features import UpgradeType
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import FEATURES
from kvorum.metadata.java_hash import hash_table_order
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MINIMUM_METADATA_VERSION,
    MetadataVersion,
    metadata_version_from_level,
    metadata_version_from_text,
)
from kvorum.wire.java_text import java_trim, parse_java_integer

NAME = "features"
HELP = "describe and change the levels of a cluster's features"
PROGRAM = "kvorum features"
COMMANDS = MappingProxyType(
    {
        "describe": "show the levels that a node supports, and those in force",
        "upgrade": "raise the levels of features",
        "downgrade": "lower the levels of features",
        "disable": "set the levels of features to 0",
        "version-mapping": "show the feature levels that belong to a metadata.version",
        "feature-dependencies": "show which features a feature level needs",
    }
)
_OFFLINE = ("version-mapping", "feature-dependencies")
"""The sub-commands that ask no server."""
_CHANGES = ("upgrade", "downgrade", "disable")
_BOOTSTRAP = ("--bootstrap-server", "--bootstrap-controller")


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-features' own rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    return exit_code(lambda: _run_command(arguments), is_debugging=is_debugging, shows_cause=False)


def _run_command(words: Sequence[str]) -> int:
    arguments = parse_arguments(words)
    if arguments.command == "version-mapping":
        print_version_mapping(arguments.release_version)
        return 0
    if arguments.command == "feature-dependencies":
        print_feature_dependencies(arguments.feature)
        return 0
    properties = client_properties(
        arguments.command_config,
        servers=arguments.bootstrap_server,
        controllers=arguments.bootstrap_controller,
    )
    if arguments.bootstrap_server is None and arguments.bootstrap_controller is None:
        _Parser(prog=PROGRAM).complain(
            "You must specify either --bootstrap-controller or --bootstrap-server."
        )
        raise UsageError
    asyncio.run(_ask(arguments, admin_settings(properties, warn=print_warning)))
    return 0


async def _ask(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        if arguments.command == "describe":
            await print_features(client, arguments.node_id)
        else:
            await update_features(client, arguments)


class _Parser(KafkaStyleParser):
    """A parser that complains as kafka-features does: without the usage, and without an end."""

    def complain(self, message: str, suggestions: Sequence[str] = ()) -> None:
        """Print the message alone, on a line that goes on; kafka-features suggests nothing."""
        del suggestions
        sys.stderr.write(f"Command line error: {message}. Type --help for help.")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed."""
    return parse_in_kafkas_order(
        _build_parser, arguments, options_with_value=(*_BOOTSTRAP, "--command-config")
    )


def _build_parser(is_strict: bool) -> ToolParser:
    parser = _Parser(
        prog=PROGRAM, description="Show and change the levels of a cluster's features."
    )
    connection = parser.add_mutually_exclusive_group()
    for option, nodes in zip(_BOOTSTRAP, ("brokers", "controllers"), strict=True):
        connection.add_argument(
            option, help=f"{nodes} to connect to first, host:port each, separated by commas"
        )
    parser.add_argument("--command-config", help="a properties file with settings of the client")
    commands = parser.add_subparsers(dest="command", required=is_strict, parser_class=_Parser)
    added = {
        name: commands.add_parser(
            name, help=text, epilog=None if name in _OFFLINE else CONNECTION_EPILOG
        )
        for name, text in COMMANDS.items()
    }
    added["describe"].add_argument(
        "--node-id", type=java_integer, help="the node to ask, instead of any broker"
    )
    for name in _CHANGES:
        _add_change_options(added[name], name)
    added["version-mapping"].add_argument(
        "--release-version",
        help=f"the release or metadata.version: at least {MINIMUM_METADATA_VERSION.text}, by "
        f"default {LATEST_PRODUCTION_METADATA_VERSION.text}",
    )
    added["feature-dependencies"].add_argument(
        "--feature",
        action="append",
        required=is_strict,
        help="a feature and its level, such as group.version=1; may be given several times",
    )
    return ToolParser(parser, added)


def _add_change_options(parser: argparse.ArgumentParser, name: str) -> None:
    what = "a feature" if name == "disable" else "a feature and its level, such as group.version=1"
    if name != "disable":
        parser.add_argument("--metadata", help="deprecated: the metadata.version, such as 3.3-IV3")
        parser.add_argument(
            "--release-version",
            help="the release or metadata.version to whose levels all features change",
        )
    parser.add_argument("--feature", action="append", help=f"{what}; may be given several times")
    if name != "upgrade":
        parser.add_argument("--unsafe", action="store_true", help="even if metadata is lost by it")
    parser.add_argument("--dry-run", action="store_true", help="check the change without making it")


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

    An upgrade leaves out the features that the release has at level 0. Features whose level kvorum
    does not serve keep their level: whether other brokers serve it only the operator knows.
    """
    version = _metadata_version(text)
    levels = {METADATA_VERSION_FEATURE: int(version)}
    for feature in FEATURES:
        level = feature.kafka_level(version)
        if level not in feature.served:
            continue
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


def _add(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise AdminError(f"Feature {name} was specified more than once.")
    levels[name] = level


def _metadata_version(text: str) -> MetadataVersion:
    try:
        return metadata_version_from_text(text, allow_unstable=True)
    except UnknownFeatureError as error:
        raise AdminError(str(error)) from error


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
        levels: dict[str, int] = {}
        for name in features:
            _add(levels, name, 0)
        return levels
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
