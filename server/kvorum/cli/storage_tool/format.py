"""``format``: make the directories of a node ready for a cluster."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from kvorum.cli.storage_tool.configuration import log_directories
from kvorum.metadata.config_definitions.java_text import java_trim, parse_java_integer
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.metadata_version import MetadataVersion, metadata_version_from_text
from kvorum.node.config import NodeConfig
from kvorum.node.format import (
    DynamicVoter,
    FormatError,
    FormatRequest,
    format_directories,
    parse_dynamic_voters,
    standalone_voters,
)
from kvorum.storage.files import FileSystem


def run_format(arguments: argparse.Namespace, config: NodeConfig, files: FileSystem) -> None:
    """Format the unformatted directories and print each of them; FormatError if refused."""
    source = random.SystemRandom()
    release_version = _release_version(arguments.release_version, config)
    levels = _feature_levels(arguments.feature or ())
    request = FormatRequest(
        node_id=config.node_id,
        cluster_id=arguments.cluster_id,
        directories=log_directories(config),
        metadata_directory=config.metadata_log.directory,
        controller_listener_name=config.listeners.controller_names[0],
        is_controller=config.is_controller,
        has_dynamic_quorum=not config.quorum.is_static,
        initial_controllers=_initial_controllers(arguments, config, source),
        release_version=release_version,
        feature_levels=levels,
        scram_arguments=tuple(arguments.add_scram or ()),
        ignore_formatted=arguments.ignore_formatted,
        enable_unstable_features=config.enable_unstable_feature_versions,
    )
    format_directories(
        request, files=files, random_source=source, now=datetime.now(UTC), report=_report
    )


def _report(line: str) -> None:
    """Print a line. The directories are formatted to the end, also where no reader is left."""
    with suppress(BrokenPipeError):
        print(line)


def _release_version(text: str | None, config: NodeConfig) -> MetadataVersion | None:
    if text is None:
        return None
    try:
        return metadata_version_from_text(
            text, allow_unstable=config.enable_unstable_feature_versions
        )
    except UnknownFeatureError as error:
        raise FormatError(str(error)) from error


def _feature_levels(arguments: Iterable[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        complaint = f"Can't parse feature=level string {argument}: "
        if not equals:
            raise FormatError(f"{complaint}equals sign not found.")
        text = java_trim(text)
        try:
            levels[java_trim(name)] = parse_java_integer(text, bits=16)
        except ValueError:
            raise FormatError(f"{complaint}unable to parse {text} as a short.") from None
    return levels


def _initial_controllers(
    arguments: argparse.Namespace, config: NodeConfig, source: random.Random
) -> Mapping[int, DynamicVoter] | None:
    """Return the initial voters that the options name; FormatError for conflicting options."""
    if config.quorum.is_static and (arguments.initial_controllers or arguments.standalone):
        raise FormatError(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )
    if arguments.initial_controllers is not None:
        return parse_dynamic_voters(arguments.initial_controllers)
    if arguments.standalone:
        return standalone_voters(config, random_source=source)
    if (
        not arguments.no_initial_controllers
        and config.is_controller
        and not config.quorum.is_static
    ):
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            "of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    return None
