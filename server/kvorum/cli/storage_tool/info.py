"""``info``: show the contents of a node's directories, and their problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kvorum.cli.storage_tool.configuration import log_directories
from kvorum.node.config import NodeConfig
from kvorum.storage.errors import MetaPropertiesError, PropertiesFormatError
from kvorum.storage.files import FileSystem
from kvorum.storage.small_files.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    read_meta_properties,
)
from kvorum.wire.uuid_text import uuid_to_text


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
