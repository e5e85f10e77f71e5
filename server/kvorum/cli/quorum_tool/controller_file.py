"""A controller's configuration file, read as kafka-metadata-quorum reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.quorum_calls import VoterEndpoint
from kvorum.metadata.config_definitions.java_text import java_trim, parse_java_integer
from kvorum.storage.errors import StorageError
from kvorum.storage.files import FileSystem
from kvorum.storage.small_files.meta_properties import read_meta_properties

_NODE_ID = "node.id"
_ROLES = "process.roles"
_METADATA_DIRECTORY = "metadata.log.dir"
_DIRECTORIES = "log.dirs"
_LISTENERS = "listeners"
_ADVERTISED = "advertised.listeners"
_CONTROLLER_NAMES = "controller.listener.names"
_QUESTION = "Is this a valid controller configuration file?"
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_ENDPOINT = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>-?[0-9]+)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerToAdd:
    """A controller to be added to the voters."""

    node_id: int
    directory_id: bytes
    endpoints: tuple[VoterEndpoint, ...]


def controller_to_add(properties: Mapping[str, str], files: FileSystem) -> ControllerToAdd:
    """Read the file's keys and the directory that they name; AdminError if something is missing."""
    node_id = _node_id(properties)
    directory = _metadata_directory(properties)
    return ControllerToAdd(
        node_id=node_id,
        directory_id=_directory_id(directory, files),
        endpoints=_controller_endpoints(properties),
    )


def _node_id(properties: Mapping[str, str]) -> int:
    if _NODE_ID not in properties:
        raise AdminError(f"{_NODE_ID} not found in configuration file. {_QUESTION}")
    node_id = _integer(properties[_NODE_ID])
    if node_id < 0:
        raise AdminError(f"{_NODE_ID} was negative in configuration file. {_QUESTION}")
    if "controller" not in properties.get(_ROLES, ""):
        raise AdminError(
            f"{_ROLES} did not contain 'controller' in configuration file. {_QUESTION}"
        )
    return node_id


def _metadata_directory(properties: Mapping[str, str]) -> str:
    if _METADATA_DIRECTORY in properties:
        return properties[_METADATA_DIRECTORY]
    if _DIRECTORIES in properties:
        # Java drops empty parts at the end, so a lone comma names no directory.
        named = java_trim(properties[_DIRECTORIES])
        if named.strip(",") or not named:
            return named.split(",")[0]
    raise AdminError(f"Neither {_METADATA_DIRECTORY} nor {_DIRECTORIES} were found. {_QUESTION}")


def _directory_id(directory: str, files: FileSystem) -> bytes:
    try:
        found = read_meta_properties(Path(directory), files)
    except (OSError, StorageError):
        found = None
    if found is None:
        raise AdminError(f"Unable to read meta.properties from {directory}")
    if found.directory_id is None:
        raise AdminError(f"No directory id found in {directory}")
    return found.directory_id


def _controller_endpoints(properties: Mapping[str, str]) -> tuple[VoterEndpoint, ...]:
    """Return the endpoints of the controller: the advertised ones, otherwise the listeners."""
    known: dict[str, VoterEndpoint] = {}
    for key in (_LISTENERS, _ADVERTISED):
        for entry in filter(None, _COMMA.split(properties.get(key, ""))):
            endpoint = _endpoint(entry)
            known[endpoint.listener] = endpoint
    if _CONTROLLER_NAMES not in properties:
        raise AdminError(f"{_CONTROLLER_NAMES} was not found. {_QUESTION}")
    found: dict[VoterEndpoint, None] = {}
    for text in properties[_CONTROLLER_NAMES].split(","):
        name = _listener_name(text)
        if name not in known:
            raise AdminError(f"Cannot find information about controller listener name: {name}")
        found[known[name]] = None
    return tuple(found)


def _endpoint(entry: str) -> VoterEndpoint:
    match = _ENDPOINT.match(entry)
    if match is None:
        raise AdminError(f"Unable to parse {entry} to a broker endpoint")
    name = _listener_name(match["name"])
    return VoterEndpoint(name, match["host"] or "localhost", _integer(match["port"]))


def _listener_name(text: str) -> str:
    if not java_trim(text):
        raise AdminError("The provided listener name is null or empty string")
    return text.upper()


def _integer(text: str) -> int:
    try:
        return parse_java_integer(text, bits=32)
    except ValueError:
        raise AdminError(f'For input string: "{text}"') from None
