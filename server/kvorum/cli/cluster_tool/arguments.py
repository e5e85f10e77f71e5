"""The command line of ``kvorum cluster``: kafka-cluster's options, checks and exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import MappingProxyType

from kvorum.cli.kafka_arguments import (
    KafkaStyleParser,
    ToolParser,
    java_integer,
    parse_in_kafkas_order,
)

PROGRAM = "kvorum cluster"
COMMANDS = MappingProxyType(
    {
        "cluster-id": "show the id of the cluster",
        "unregister": "remove the registration of a broker that will not return",
        "unregister-controller": "remove the registration of a controller that will not return",
        "list-endpoints": "show the addresses of the brokers, or of the controllers",
        "api-versions": "show the APIs and versions that each broker, or controller, serves",
    }
)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; UsageError after the message is printed."""
    return parse_in_kafkas_order(_build_parser, arguments)


def _build_parser(is_strict: bool) -> ToolParser:
    parser = KafkaStyleParser(
        prog=PROGRAM, description="Show what a cluster is made of, and unregister nodes."
    )
    commands = parser.add_subparsers(
        dest="command", required=is_strict, parser_class=KafkaStyleParser
    )
    added = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    for command in added.values():
        _add_connection_options(command, is_strict=is_strict)
    added["unregister"].add_argument(
        "--id", "-i", type=java_integer, required=is_strict, help="the broker's node id"
    )
    added["unregister-controller"].add_argument(
        "--id", "-i", type=java_integer, required=is_strict, help="the controller's node id"
    )
    added["list-endpoints"].add_argument(
        "--include-fenced-brokers", action="store_true", help="show fenced brokers too"
    )
    return ToolParser(parser, added)


def _add_connection_options(parser: argparse.ArgumentParser, *, is_strict: bool) -> None:
    connection = parser.add_mutually_exclusive_group(required=is_strict)
    connection.add_argument(
        "--bootstrap-server",
        "-b",
        help="brokers to connect to first, host:port each, separated by commas",
    )
    connection.add_argument(
        "--bootstrap-controller",
        "-C",
        help="controllers to connect to first, host:port each, separated by commas",
    )
    parser.add_argument("--config", help="deprecated: use --command-config")
    parser.add_argument(
        "--command-config", "-c", help="a properties file with settings of the client"
    )
