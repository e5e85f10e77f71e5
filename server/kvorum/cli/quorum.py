"""``kvorum quorum``: describe and change the metadata quorum, as kafka-metadata-quorum does.

``reassign`` (KIP-642) and ``recover`` are ours alone: their wrong usage has the exit code 2.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.command import client_properties, exit_code, print_warning
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.nodes import AdminSettings, admin_settings
from kvorum.cli.quorum_tool.arguments import (
    REASSIGN,
    RECOVER,
    command_of,
    parse_arguments,
    parse_reassign_arguments,
    parse_recover_arguments,
)
from kvorum.cli.quorum_tool.changes import add_controller, remove_controller
from kvorum.cli.quorum_tool.describe import print_replication, print_status
from kvorum.cli.quorum_tool.reassign import (
    NO_REASSIGNMENT,
    cancel_reassignment,
    follow_reassignment,
    print_plan,
    print_reassignment,
    start_reassignment,
)
from kvorum.cli.unparsed import accept_unparsed
from kvorum.storage.files import RealFileSystem

NAME = "quorum"
HELP = "describe the metadata quorum, add, remove and replace its voters, recover a lost majority"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-metadata-quorum's rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    run_words = _run_recover if command_of(arguments) == RECOVER else _run_command
    return exit_code(lambda: run_words(arguments), is_debugging=is_debugging)


def _run_recover(arguments: Sequence[str]) -> int:
    parsed = parse_recover_arguments(arguments)
    # Loaded only here: the other commands need no storage and no raft.
    from kvorum.cli.quorum_tool.recover import run_recover  # noqa: PLC0415 - see above

    return run_recover(parsed, [NAME, *arguments])


def _run_command(words: Sequence[str]) -> int:
    parse = parse_reassign_arguments if command_of(words) == REASSIGN else parse_arguments
    arguments = parse(words)
    properties = _properties(arguments)
    settings = admin_settings(properties, warn=print_warning)
    if arguments.command == REASSIGN:
        _run_reassign(arguments, settings)
        return 0
    _check_options(arguments)
    asyncio.run(_ask(arguments, properties, settings))
    return 0


def _run_reassign(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    try:
        asyncio.run(_reassign(arguments, settings))
    except KeyboardInterrupt:
        if not arguments.wait:
            raise
        raise AdminError(
            "Interrupted: the reassignment goes on without this command; --cancel stops it."
        ) from None


async def _reassign(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        if arguments.status:
            await print_reassignment(client)
        elif arguments.cancel:
            await cancel_reassignment(client)
        elif arguments.dry_run:
            await print_plan(client, arguments.voters)
        else:
            if arguments.voters is not None:
                await start_reassignment(client, arguments.voters)
            if arguments.wait and not await follow_reassignment(client, arguments.voters):
                print(NO_REASSIGNMENT)


def _properties(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the properties of --command-config, with the addresses of the command line."""
    file = arguments.command_config
    if file is not None and not Path(file).exists():
        raise AdminError(f"Properties file {file} does not exist.")
    return client_properties(
        file, servers=arguments.bootstrap_server, controllers=arguments.bootstrap_controller
    )


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse conflicting options, in the order of Kafka's tool."""
    if arguments.command == "describe":
        if arguments.status and arguments.replication:
            raise AdminError(
                "Only one of --status or --replication should be specified with describe "
                "sub-command"
            )
        if arguments.status and arguments.human_readable:
            raise AdminError(
                "The option --human-readable is only supported along with --replication"
            )
        if not arguments.status and not arguments.replication:
            raise AdminError(
                "One of --status or --replication must be specified with describe sub-command"
            )
    if arguments.command == "add-controller" and arguments.command_config is None:
        raise AdminError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )


async def _ask(
    arguments: argparse.Namespace, properties: Mapping[str, str], settings: AdminSettings
) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        if arguments.command == "add-controller":
            await add_controller(
                client, properties, files=RealFileSystem(), is_dry_run=arguments.dry_run
            )
        elif arguments.command == "remove-controller":
            await remove_controller(
                client,
                voter_id=arguments.controller_id,
                directory_id_text=arguments.controller_directory_id,
                is_dry_run=arguments.dry_run,
                unregisters=arguments.unregister,
                client_id=settings.client_id,
            )
        elif arguments.replication:
            await print_replication(client, is_human_readable=arguments.human_readable)
        else:
            await print_status(client)
