"""The properties file of a node, and the overrides of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvorum.node.config.errors import ConfigError
from kvorum.storage.errors import PropertiesFormatError
from kvorum.storage.small_files.java_properties import load_java_properties


def load_properties(path: Path | str) -> dict[str, str]:
    """Read a Java properties file; raises ConfigError with the reason in one line."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration file {path}: {error.strerror}") from error
    try:
        return load_java_properties(data)
    except PropertiesFormatError as error:
        raise ConfigError(f"Malformed configuration file {path}: {error}") from error


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Read ``key=value`` arguments; the first ``=`` separates key and value."""
    overrides: dict[str, str] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"Invalid override '{argument}': expected key=value")
        overrides[key.strip()] = value
    return overrides
