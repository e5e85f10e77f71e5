"""``kvorum cluster``: a cluster's id, its nodes and their registration, as kafka-cluster does."""

from __future__ import annotations

import argparse
import asyncio
import sys
import traceback
from collections.abc import Sequence

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.command import client_properties, print_warning
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.settings import AdminSettings, admin_settings
from kvorum.cli.cluster_tool.arguments import parse_arguments
from kvorum.cli.cluster_tool.commands import (
    print_api_versions,
    print_cluster_id,
    print_endpoints,
    unregister_broker,
    unregister_controller,
)
from kvorum.cli.kafka_arguments import UsageError
from kvorum.cli.unparsed import accept_unparsed

NAME = "cluster"
HELP = "show a cluster's id and nodes, unregister nodes"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-cluster's own rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    try:
        _run_command(parse_arguments(arguments))
    except (UsageError, SystemExit):
        # argparse exits after it has printed the help, for which kafka-cluster has the code 1 too.
        return 1
    except AdminError as error:
        if is_debugging:
            traceback.print_exc()
        print(error, file=sys.stderr)
        if error.cause:
            print(f"Caused by: {error.cause}", file=sys.stderr)
        return 1
    return 0


def _run_command(arguments: argparse.Namespace) -> None:
    properties = client_properties(
        _config_file(arguments),
        servers=arguments.bootstrap_server,
        controllers=arguments.bootstrap_controller,
    )
    asyncio.run(_ask(arguments, admin_settings(properties, warn=print_warning)))


def _config_file(arguments: argparse.Namespace) -> str | None:
    file: str | None = arguments.command_config
    if arguments.config is None:
        return file
    if file is not None:
        raise AdminError("--config and --command-config cannot be specified together.")
    print(
        "Option --config has been deprecated and will be removed in a future version. "
        "Use --command-config instead."
    )
    deprecated: str = arguments.config
    return deprecated


async def _ask(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    asks_controllers = settings.asks_controllers
    async with AdminClient(settings, warn=print_warning) as client:
        match arguments.command:
            case "cluster-id":
                await print_cluster_id(client, asks_controllers=asks_controllers)
            case "unregister":
                await unregister_broker(client, settings, broker_id=arguments.id)
            case "unregister-controller":
                await unregister_controller(client, settings, controller_id=arguments.id)
            case "api-versions":
                await print_api_versions(client, asks_controllers=asks_controllers)
            case _:
                await print_endpoints(
                    client,
                    asks_controllers=asks_controllers,
                    includes_fenced=arguments.include_fenced_brokers,
                )
