"""The command line of ``kvorum features``: kafka-features' options, checks and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import MappingProxyType

from kvorum.cli.kafka_arguments import (
    KafkaStyleParser,
    ToolParser,
    UsageError,
    java_integer,
    parse_in_kafkas_order,
)
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
)

PROGRAM = "kvorum features"
COMMANDS = MappingProxyType(
    {
        "describe": "show the levels that a node supports, and those in force",
        "upgrade": "raise the levels of features",
        "downgrade": "lower the levels of features",
        "disable": "set the levels of features to 0",
        "version-mapping": "show the feature levels that belong to a metadata.version",
        "feature-dependencies": "show which features a feature level needs",
    }
)
_CHANGES = ("upgrade", "downgrade", "disable")
_BOOTSTRAP = ("--bootstrap-server", "--bootstrap-controller")


class _Parser(KafkaStyleParser):
    """A parser that complains as kafka-features does: without the usage, and without an end."""

    def complain(self, message: str, suggestions: Sequence[str] = ()) -> None:
        """Print the message alone, on a line that goes on; kafka-features suggests nothing."""
        del suggestions
        sys.stderr.write(f"Command line error: {message}. Type --help for help.")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed."""
    return parse_in_kafkas_order(
        _build_parser, arguments, options_with_value=(*_BOOTSTRAP, "--command-config")
    )


def refuse_without_address() -> UsageError:
    """Print that an address is missing, and return the error to raise."""
    _Parser(prog=PROGRAM).complain(
        "You must specify either --bootstrap-controller or --bootstrap-server."
    )
    return UsageError()


def _build_parser(is_strict: bool) -> ToolParser:
    parser = _Parser(
        prog=PROGRAM, description="Show and change the levels of a cluster's features."
    )
    connection = parser.add_mutually_exclusive_group()
    for option, nodes in zip(_BOOTSTRAP, ("brokers", "controllers"), strict=True):
        connection.add_argument(
            option, help=f"{nodes} to connect to first, host:port each, separated by commas"
        )
    parser.add_argument("--command-config", help="a properties file with settings of the client")
    commands = parser.add_subparsers(dest="command", required=is_strict, parser_class=_Parser)
    added = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    added["describe"].add_argument(
        "--node-id", type=java_integer, help="the node to ask, instead of any broker"
    )
    for name in _CHANGES:
        _add_change_options(added[name], name)
    added["version-mapping"].add_argument(
        "--release-version",
        help=f"the release or metadata.version: at least {MINIMUM_METADATA_VERSION.text}, by "
        f"default {LATEST_PRODUCTION_METADATA_VERSION.text}",
    )
    added["feature-dependencies"].add_argument(
        "--feature",
        action="append",
        required=is_strict,
        help="a feature and its level, such as group.version=1; may be given several times",
    )
    return ToolParser(parser, added)


def _add_change_options(parser: argparse.ArgumentParser, name: str) -> None:
    what = "a feature" if name == "disable" else "a feature and its level, such as group.version=1"
    if name != "disable":
        parser.add_argument("--metadata", help="deprecated: the metadata.version, such as 3.3-IV3")
        parser.add_argument(
            "--release-version",
            help="the release or metadata.version to whose levels all features change",
        )
    parser.add_argument("--feature", action="append", help=f"{what}; may be given several times")
    if name != "upgrade":
        parser.add_argument("--unsafe", action="store_true", help="even if metadata is lost by it")
    parser.add_argument("--dry-run", action="store_true", help="check the change without making it")
