"""The command line of ``kvorum storage``: kafka-storage's options, checks and exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import MappingProxyType

from kvorum.cli.kafka_arguments import KafkaStyleParser, UsageError, with_whole_command
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
)

__all__ = ["COMMANDS", "UsageError", "build_parser", "parse_arguments"]
PROGRAM = "kvorum storage"
_VERSIONS = (
    f"at least {MINIMUM_METADATA_VERSION.text}, by default "
    f"{LATEST_PRODUCTION_METADATA_VERSION.text}"
)
COMMANDS = MappingProxyType(
    {
        "info": "show what the directories of a node hold",
        "format": "format the directories of a node",
        "version-mapping": "show the feature levels that belong to a metadata.version",
        "feature-dependencies": "show which features a feature level needs",
        "random-uuid": "print a random uuid",
    }
)


def build_parser() -> KafkaStyleParser:
    """Return the parser of the whole command line; `command` is the sub-command's name."""
    parser = KafkaStyleParser(
        prog=PROGRAM,
        description="Format and inspect the directories of a node.",
        fromfile_prefix_chars="@",
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=KafkaStyleParser)
    added = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    _add_config(added["info"])
    _add_format_options(added["format"])
    mapping = added["version-mapping"]
    mapping.add_argument(
        "--release-version", "-r", help=f"the release or metadata.version: {_VERSIONS}"
    )
    dependencies = added["feature-dependencies"]
    dependencies.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        help="a feature and its level, such as group.version=1; may be given several times",
    )
    return parser


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed.

    A sub-command may be abbreviated, as long as only one name matches.
    """
    return build_parser().parse_args(with_whole_command(arguments, COMMANDS))


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, help="the node's configuration file")


def _add_format_options(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, help="the id of the cluster")
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        help="a SCRAM credential the cluster starts with, such as "
        "'SCRAM-SHA-256=[name=alice,password=secret]'; may be given several times",
    )
    parser.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="skip directories that are formatted already, instead of failing",
    )
    parser.add_argument(
        "--release-version", "-r", help=f"the release or metadata.version to start on: {_VERSIONS}"
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        help="a feature and its level, such as kraft.version=1; may be given several times",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="make this controller the only voter of a new dynamic quorum",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="format for a dynamic quorum whose voters are known elsewhere",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        help="the voters of a new dynamic quorum, id@host:port:directory-id each, the same on "
        "every node",
    )
