"""The command line of ``kvorum quorum``: kafka-metadata-quorum's options, checks and exit codes.

``reassign`` and ``recover``, which Kafka's tool does not have, are read by modules of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import MappingProxyType

from kvorum.cli.kafka_arguments import (
    KafkaStyleParser,
    check_command_options,
    java_integer,
    with_whole_command,
)

PROGRAM = "kvorum quorum"
COMMANDS = MappingProxyType(
    {
        "describe": "show the quorum's state",
        "add-controller": "make a controller a voter",
        "remove-controller": "remove a controller from the voters",
    }
)
CONNECTION_OPTIONS = ("--bootstrap-server", "--bootstrap-controller", "--command-config")
_DRY_RUN = "print what would be done, without doing it"


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed."""
    parser = KafkaStyleParser(
        prog=PROGRAM,
        description="Describe the metadata quorum, and change its voters.",
        epilog="'reassign' (kvorum quorum reassign --help) replaces the voters step by step; "
        "'recover' (kvorum quorum recover --help) goes on after the loss of the majority.",
    )
    add_connection_options(parser)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=KafkaStyleParser)
    added = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    _add_describe_options(added["describe"])
    added["add-controller"].add_argument("--dry-run", action="store_true", help=_DRY_RUN)
    _add_remove_options(added["remove-controller"])
    words = with_whole_command(arguments, COMMANDS, options_with_value=CONNECTION_OPTIONS)
    check_command_options(words, added, options_with_value=CONNECTION_OPTIONS)
    return parser.parse_args(words)


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options in front of a sub-command."""
    connection = parser.add_mutually_exclusive_group(required=True)
    connection.add_argument(
        "--bootstrap-server",
        help="brokers to connect to first, host:port each, separated by commas",
    )
    connection.add_argument(
        "--bootstrap-controller",
        help="controllers to connect to first, host:port each, separated by commas",
    )
    parser.add_argument(
        "--command-config",
        help="a properties file with settings of the client; for add-controller, the "
        "configuration file of the controller",
    )


def _add_describe_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status", action="store_true", help="show the leader, the voters and their progress"
    )
    parser.add_argument(
        "--replication",
        action="store_true",
        help="show a table of the metadata log's replicas",
    )
    parser.add_argument(
        "--human-readable", action="store_true", help="with --replication: times as 'n ms ago'"
    )


def _add_remove_options(parser: argparse.ArgumentParser) -> None:
    # If both options are missing, Kafka's tool reports this one.
    parser.add_argument(
        "--controller-directory-id", "-d", required=True, help="the id of its metadata directory"
    )
    parser.add_argument(
        "--controller-id", "-i", required=True, type=java_integer, help="the controller's node id"
    )
    parser.add_argument("--dry-run", action="store_true", help=_DRY_RUN)
    parser.add_argument(
        "--unregister",
        action="store_true",
        help="remove its registration too, after it is no voter any more",
    )
