"""``kvorum features``: describe and change the levels of features, as kafka-features does."""

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
from kvorum.cli.features_tool.arguments import parse_arguments, refuse_without_address
from kvorum.cli.features_tool.describe import (
    print_feature_dependencies,
    print_features,
    print_version_mapping,
)
from kvorum.cli.features_tool.update import update_features
from kvorum.cli.kafka_arguments import UsageError
from kvorum.cli.unparsed import accept_unparsed

NAME = "features"
HELP = "describe and change the levels of a cluster's features"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-features' own rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    try:
        _run_command(parse_arguments(arguments))
    except UsageError:
        return 1
    except SystemExit:
        # argparse exits in this way after it has printed the help.
        return 0
    except AdminError as error:
        if is_debugging:
            traceback.print_exc()
        print(error, file=sys.stderr)
        return 1
    return 0


def _run_command(arguments: argparse.Namespace) -> None:
    if arguments.command == "version-mapping":
        print_version_mapping(arguments.release_version)
        return
    if arguments.command == "feature-dependencies":
        print_feature_dependencies(arguments.feature)
        return
    properties = client_properties(
        arguments.command_config,
        servers=arguments.bootstrap_server,
        controllers=arguments.bootstrap_controller,
    )
    if arguments.bootstrap_server is None and arguments.bootstrap_controller is None:
        raise refuse_without_address()
    asyncio.run(_ask(arguments, admin_settings(properties, warn=print_warning)))


async def _ask(arguments: argparse.Namespace, settings: AdminSettings) -> None:
    async with AdminClient(settings, warn=print_warning) as client:
        if arguments.command == "describe":
            await print_features(client, arguments.node_id)
        else:
            await update_features(client, arguments)
