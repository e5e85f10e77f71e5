"""The command line of ``kvorum storage``: kafka-storage's options, checks and exit codes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from types import MappingProxyType
from typing import NoReturn

from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
)

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
_REQUIRED = re.compile(r"the following arguments are required: (?P<first>[^,]+)")
_UNREADABLE = re.compile(r"\[Errno .*: (?P<file>'.*')\Z")
_CHOICES = re.compile(r"\(choose from (?P<choices>.*)\)")


class UsageError(Exception):
    """The command line is wrong; the usage has been printed already."""


class KafkaStyleParser(argparse.ArgumentParser):
    """Reports wrong usage the way Kafka's tools do: one complaint, and never exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the complaint, and raise UsageError."""
        self.print_usage(sys.stderr)
        sys.stderr.write(f"{PROGRAM}: error: {_as_kafka_says(message)}\n")
        raise UsageError


def _as_kafka_says(message: str) -> str:
    if (required := _REQUIRED.match(message)) is not None:
        if required["first"] == "command":
            return "too few arguments"
        return f"argument {required['first']} is required"
    if (unreadable := _UNREADABLE.match(message)) is not None:
        return f"Could not read arguments from file {unreadable['file']}"
    if message.startswith("unrecognized arguments: "):
        return "unrecognized arguments: '{}'".format(message.partition(": ")[2])
    if (choices := _CHOICES.search(message)) is not None:
        names = ", ".join(f"'{name.strip(chr(39))}'" for name in choices["choices"].split(", "))
        complaint = message[: choices.start()].partition(": ")[2]
        return f"{complaint}(choose from {names})"
    return message


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
    """Read the command line; UsageError after the complaint was printed.

    A sub-command may be shortened as long as only one begins so.
    """
    parser = build_parser()
    words = list(arguments)
    if words:
        meant = [name for name in COMMANDS if name.startswith(words[0])]
        if len(meant) == 1 and words[0]:
            words[0] = meant[0]
    return parser.parse_args(words)


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
        help="leave directories alone that are formatted already, instead of failing",
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
