"""``add-controller``, with a controller's configuration file, and ``remove-controller``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import unregister_call
from kvorum.cli.admin.errors import ERRORS_PACKAGE, AdminError, CallFailedError
from kvorum.cli.admin.quorum_calls import VoterEndpoint, add_voter_call, remove_voter_call
from kvorum.storage.errors import StorageError
from kvorum.storage.files import FileSystem
from kvorum.storage.small_files.meta_properties import read_meta_properties
from kvorum.wire.java_text import java_trim, parse_java_integer
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

_LEFT_TO_UNREGISTER: Final = {
    f"{ERRORS_PACKAGE}.{name}" for name in ("UnsupportedVersionException", "VoterNotFoundException")
}
"""Failures to remove a voter after which its registration alone can be removed."""
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


async def add_controller(
    client: AdminClient, properties: Mapping[str, str], *, files: FileSystem, is_dry_run: bool
) -> None:
    """Add the controller that `properties` configure to the voters, and print the result.

    Raises AdminError where something is missing in them, or in the directory that they name.
    """
    node_id = _node_id(properties)
    directory_id = _directory_id_in(_metadata_directory(properties), files)
    endpoints = _controller_endpoints(properties)
    if not is_dry_run:
        await client.call(
            add_voter_call(voter_id=node_id, directory_id=directory_id, endpoints=endpoints)
        )
    done = "DRY RUN of adding" if is_dry_run else "Added"
    print(
        f"{done} controller {node_id} with directory id {uuid_to_text(directory_id)} and "
        f"endpoints: {', '.join(map(str, endpoints))}"
    )


async def remove_controller(
    client: AdminClient,
    *,
    voter_id: int,
    directory_id_text: str,
    is_dry_run: bool,
    unregisters: bool,
    client_id: str,
) -> None:
    """Remove a controller from the voters, and its registration if wanted; print the result."""
    if voter_id < 0:
        raise AdminError(f"Invalid negative --controller-id: {voter_id}")
    directory_id = _directory_id(directory_id_text)
    if not is_dry_run:
        call = remove_voter_call(voter_id=voter_id, directory_id=directory_id)
        try:
            await client.call(call)
        except CallFailedError as error:
            if unregisters and error.failure.class_name in _LEFT_TO_UNREGISTER:
                raise _not_unregistered("remove KRaft voter", voter_id, error) from error
            raise
    done = "DRY RUN of removing" if is_dry_run else "Removed"
    print(f"{done} KRaft controller {voter_id} with directory id {uuid_to_text(directory_id)}")
    if unregisters:
        if not is_dry_run:
            await _unregister(client, voter_id, client_id=client_id)
        done = "DRY RUN of unregistering" if is_dry_run else "Unregistered"
        print(f"{done} KRaft controller {voter_id}")


async def _unregister(client: AdminClient, controller_id: int, *, client_id: str) -> None:
    try:
        await client.call(unregister_call("controller", controller_id, client_id=client_id))
    except CallFailedError as error:
        raise _not_unregistered("unregister controller", controller_id, error) from error


def _not_unregistered(doing: str, controller_id: int, error: CallFailedError) -> AdminError:
    return AdminError(
        f"Failed to {doing} {controller_id}: {error.failure.text}. To unregister the controller "
        f"from the cluster, run `kafka-cluster.sh unregister-controller --id {controller_id}`."
    )


def _directory_id(text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError as error:
        problem = f"Failed to parse --controller-directory-id: {error}"
        raise AdminError(problem) from error


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


def _directory_id_in(directory: str, files: FileSystem) -> bytes:
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
