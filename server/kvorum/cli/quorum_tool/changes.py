"""``add-controller`` and ``remove-controller``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import unregister_controller_call
from kvorum.cli.admin.command import print_refused_unregistration
from kvorum.cli.admin.error_classes import ERRORS_PACKAGE
from kvorum.cli.admin.errors import AdminError, CallFailedError
from kvorum.cli.admin.quorum_calls import add_voter_call, remove_voter_call
from kvorum.cli.quorum_tool.controller_file import controller_to_add
from kvorum.storage.files import FileSystem
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

_LEFT_TO_UNREGISTER: Final = {
    f"{ERRORS_PACKAGE}.{name}" for name in ("UnsupportedVersionException", "VoterNotFoundException")
}
"""Failures to remove a voter after which its registration alone can be removed."""


async def add_controller(
    client: AdminClient,
    properties: Mapping[str, str],
    *,
    files: FileSystem,
    asks_controllers: bool,
    is_dry_run: bool,
) -> None:
    """Add the controller that `properties` configure to the voters, and print the result."""
    controller = controller_to_add(properties, files)
    if not is_dry_run:
        await client.call(
            add_voter_call(
                voter_id=controller.node_id,
                directory_id=controller.directory_id,
                endpoints=controller.endpoints,
                asks_controllers=asks_controllers,
            )
        )
    done = "DRY RUN of adding" if is_dry_run else "Added"
    print(
        f"{done} controller {controller.node_id} with directory id "
        f"{uuid_to_text(controller.directory_id)} and endpoints: "
        f"{', '.join(map(str, controller.endpoints))}"
    )


async def remove_controller(
    client: AdminClient,
    *,
    voter_id: int,
    directory_id_text: str,
    asks_controllers: bool,
    is_dry_run: bool,
    unregisters: bool,
    client_id: str,
) -> None:
    """Remove a controller from the voters, and its registration if wanted; print the result."""
    if voter_id < 0:
        raise AdminError(f"Invalid negative --controller-id: {voter_id}")
    directory_id = _directory_id(directory_id_text)
    if not is_dry_run:
        call = remove_voter_call(
            voter_id=voter_id, directory_id=directory_id, asks_controllers=asks_controllers
        )
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
    log_refusal = partial(print_refused_unregistration, client_id, "controller", controller_id)
    call = unregister_controller_call(controller_id, log_refusal=log_refusal)
    try:
        await client.call(call)
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
