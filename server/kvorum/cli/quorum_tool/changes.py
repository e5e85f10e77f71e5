"""``add-controller`` and ``remove-controller``."""

from __future__ import annotations

from collections.abc import Mapping

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.quorum_calls import add_voter_call, remove_voter_call
from kvorum.cli.quorum_tool.controller_file import controller_to_add
from kvorum.storage.files import FileSystem
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text


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
) -> None:
    """Remove a controller from the voters, and print the result."""
    if voter_id < 0:
        raise AdminError(f"Invalid negative --controller-id: {voter_id}")
    directory_id = _directory_id(directory_id_text)
    if not is_dry_run:
        await client.call(
            remove_voter_call(
                voter_id=voter_id, directory_id=directory_id, asks_controllers=asks_controllers
            )
        )
    # The dry run's second space is Kafka's.
    done = "DRY RUN of removing " if is_dry_run else "Removed "
    print(f"{done} KRaft controller {voter_id} with directory id {uuid_to_text(directory_id)}")


def _directory_id(text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError as error:
        problem = f"Failed to parse --controller-directory-id: {error}"
        raise AdminError(problem) from error
