"""The command line of ``kvorum quorum reassign``; exit code 2 if it is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from kvorum.cli.kafka_arguments import command_index
from kvorum.cli.quorum_tool.arguments import CONNECTION_OPTIONS, PROGRAM, add_connection_options
from kvorum.metadata.target_voters import (
    InvalidTargetVotersError,
    TargetVoters,
    parse_target_voters,
)

REASSIGN = "reassign"
_DESCRIPTION = (
    "Replace the voters of the quorum, one step after the other (KIP-642). The active controller "
    "takes the steps; the reassignment goes on without this command, and outlives changes of the "
    "leader."
)


def is_reassign(arguments: Sequence[str]) -> bool:
    """Return whether the sub-command is ``reassign``."""
    index = command_index(arguments, CONNECTION_OPTIONS)
    return index < len(arguments) and arguments[index] == REASSIGN


def parse_reassign_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; SystemExit with code 2 after the message is printed."""
    parser = argparse.ArgumentParser(prog=PROGRAM)
    add_connection_options(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(REASSIGN, description=_DESCRIPTION)
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--voters",
        type=_targets,
        metavar="ID[:DIRECTORY],...",
        help="the voters that the quorum is to have; a directory id where a node has two",
    )
    what.add_argument(
        "--cancel", action="store_true", help="stop where the reassignment is; undo nothing"
    )
    what.add_argument(
        "--status", action="store_true", help="show the reassignment that is under way"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="with --voters: print every step and the quorum after it, without doing anything; who "
        "has not fetched for controller.quorum.fetch.timeout.ms counts as down (the leader's value "
        "with --bootstrap-controller, 2000 with --bootstrap-server)",
    )
    command.add_argument(
        "--wait",
        action="store_true",
        help="with --voters or alone: show the progress until the reassignment ends; Ctrl-C leaves "
        "it running",
    )
    parsed = parser.parse_args(arguments)
    _check_combination(parsed, command)
    return parsed


def _check_combination(parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if parsed.dry_run and (parsed.voters is None or parsed.wait):
        parser.error("--dry-run goes with --voters alone")
    if parsed.wait and (parsed.cancel or parsed.status):
        parser.error("--wait goes with --voters, or alone")
    if parsed.voters is None and not (parsed.cancel or parsed.status or parsed.wait):
        parser.error("one of --voters, --cancel, --status and --wait is required")


def _targets(text: str) -> TargetVoters:
    try:
        return parse_target_voters(text)
    except InvalidTargetVotersError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
