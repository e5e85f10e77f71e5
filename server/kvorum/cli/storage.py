"""``kvorum storage``: format and inspect a node's directories, as kafka-storage does."""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections.abc import Sequence

from kvorum.cli.storage_tool.arguments import COMMANDS, UsageError, parse_arguments
from kvorum.cli.storage_tool.configuration import load_configuration
from kvorum.cli.storage_tool.format import run_format
from kvorum.cli.storage_tool.info import print_info
from kvorum.cli.storage_tool.mappings import print_feature_dependencies, print_version_mapping
from kvorum.node.config import ConfigError
from kvorum.node.format import FormatError
from kvorum.storage.errors import StorageError
from kvorum.storage.files import RealFileSystem
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

NAME = "storage"
HELP = "format and inspect the directories of a node"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-storage's own rules for it differ from ours."""
    parser.usage = f"kvorum storage {{{','.join(COMMANDS)}}} ..."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(
        ("commands (each has --help):", *(f"  {name:22}{text}" for name, text in COMMANDS.items()))
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(arguments: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage, refusals and problems."""
    try:
        return _run_command(parse_arguments(arguments))
    except UsageError:
        return 1
    except SystemExit:
        # argparse exits in this way after it has printed the help.
        return 0
    except (ConfigError, FormatError, StorageError) as error:
        if is_debugging:
            traceback.print_exc()
        print(error, file=sys.stderr)
        return 1


def _run_command(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "info":
            return print_info(load_configuration(arguments.config), RealFileSystem())
        case "format":
            run_format(arguments, load_configuration(arguments.config), RealFileSystem())
        case "version-mapping":
            print_version_mapping(arguments.release_version)
        case "feature-dependencies":
            print_feature_dependencies(arguments.feature)
        case _:
            print(uuid_to_text(random_uuid(random.SystemRandom())))
    return 0
