"""``format`` and ``info``: a node's directories made ready for a cluster, and what is in them."""

import argparse
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.metadata_version import MetadataVersion, metadata_version_from_text
from kvorum.node.config import NodeConfig, load_properties
from kvorum.node.format import (
    DynamicVoter,
    FormatError,
    FormatRequest,
    format_directories,
    parse_dynamic_voters,
    standalone_voters,
)
from kvorum.storage.errors import MetaPropertiesError, PropertiesFormatError
from kvorum.storage.files import FileSystem
from kvorum.storage.small_files.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    read_meta_properties,
)
from kvorum.wire.java_text import java_trim, parse_java_integer
from kvorum.wire.uuid_text import uuid_to_text


def load_configuration(path: str) -> NodeConfig:
    """Read the file; a node that only Kafka can run may be formatted and inspected as well."""
    return NodeConfig.from_properties(load_properties(path), must_be_servable=False)


def log_directories(config: NodeConfig) -> tuple[str, ...]:
    """Return every directory of the node as the file writes it, in order of name."""
    return tuple(sorted({*config.log_directories, config.metadata_log.directory}))


def run_format(arguments: argparse.Namespace, config: NodeConfig, files: FileSystem) -> None:
    """Format the unformatted directories and print each of them; FormatError if refused."""
    source = random.SystemRandom()
    release_version = _release_version(arguments.release_version, config)
    # As in Kafka, a wrong level is named before a wrong controller.
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


@dataclass(slots=True)
class _Findings:
    """The findings so far; `first` is the first file that could be read."""

    directories: list[Path] = field(default_factory=list[Path])
    problems: list[str] = field(default_factory=list[str])
    first: MetaProperties | None = None


def print_info(config: NodeConfig, files: FileSystem) -> int:
    """Print the findings and return the exit code: 1 if there is a problem."""
    findings = _Findings()
    for text in log_directories(config):
        _inspect(Path(text), findings, files)
    if findings.first is not None and findings.first.version == 0:
        findings.problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the "
            "directories are formatted for legacy mode."
        )
    _print_section("Found log directory:", "Found log directories:", findings.directories)
    if findings.first is not None:
        print(f"Found metadata: {_properties_text(findings.first)}\n")
    _print_section("Found problem:", "Found problems:", findings.problems)
    return 1 if findings.problems else 0


def _inspect(directory: Path, findings: _Findings, files: FileSystem) -> None:
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        findings.problems.append(f"{directory} {what}")
        return
    findings.directories.append(directory)
    try:
        properties = read_meta_properties(directory, files)
    except (MetaPropertiesError, PropertiesFormatError) as error:
        file = directory / META_PROPERTIES_FILE
        findings.problems.append(f"Error loading {file}: {error.problem}")
        return
    if properties is None:
        findings.problems.append(f"{directory} is not formatted.")
    elif findings.first is None:
        findings.first = properties
    elif properties.cluster_id != findings.first.cluster_id:
        findings.problems.append("Mismatched cluster IDs between storage directories.")
    elif properties.node_id != findings.first.node_id:
        findings.problems.append("Mismatched node IDs between storage directories.")


def _print_section(title: str, plural_title: str, lines: list[Path] | list[str]) -> None:
    if lines:
        print(title if len(lines) == 1 else plural_title)
        for line in lines:
            print(f"  {line}")
        print()


def _properties_text(properties: MetaProperties) -> str:
    """Return a file's content in the form of Java's sorted map."""
    values = {"version": str(properties.version)}
    if properties.cluster_id is not None:
        values["cluster.id"] = properties.cluster_id
    if properties.node_id is not None:
        key = "broker.id" if properties.version == 0 else "node.id"
        values[key] = str(properties.node_id)
    if properties.directory_id is not None:
        values["directory.id"] = uuid_to_text(properties.directory_id)
    pairs = ", ".join(f"{key}={values[key]}" for key in sorted(values))
    return f"{{{pairs}}}"
