"""The command line of ``kvorum quorum recover``; exit code 2 if it is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from kvorum.cli.kafka_arguments import command_index
from kvorum.cli.quorum_tool.arguments import CONNECTION_OPTIONS, PROGRAM
from kvorum.metadata.config_definitions import (
    InvalidConfigError,
    QuorumVoterEntry,
    parse_quorum_voters,
)

RECOVER = "recover"
_DESCRIPTION = (
    "Make one surviving controller the only voter, after the majority of the controllers is lost "
    "for good. Works on the directories of stopped nodes. Without --execute nothing is written: "
    "what would be kept, lost and written is printed."
)
_EPILOG = (
    "Name every directory that is left, those of brokers too: the more there are, the more is "
    "known of what was committed. The lost controllers must never start again with their old "
    "directories."
)


def is_recover(arguments: Sequence[str]) -> bool:
    """Return whether the sub-command is ``recover``."""
    index = command_index(arguments, CONNECTION_OPTIONS)
    return index < len(arguments) and arguments[index] == RECOVER


def parse_recover_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; SystemExit with code 2 after the message is printed."""
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {RECOVER}", description=_DESCRIPTION, epilog=_EPILOG
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--directories",
        type=_directories,
        metavar="DIR,...",
        help="the metadata log directories of the survivors: metadata.log.dir, or the first of "
        "log.dirs",
    )
    where.add_argument(
        "--config",
        nargs="+",
        metavar="FILE",
        help="the configurations of the survivors, in place of their directories",
    )
    parser.add_argument(
        "--voters",
        type=_voter,
        metavar="ID@HOST:PORT",
        help="the node to recover from, and its address as a controller (default: the voter with "
        "the longest log, with its recorded address); others are added when it runs",
    )
    parser.add_argument(
        "--allow-observer",
        action="store_true",
        help="recover from a node that is no voter, such as a broker",
    )
    parser.add_argument(
        "--allow-shorter-log",
        action="store_true",
        help="recover from a log that is not the longest one",
    )
    parser.add_argument(
        "--execute", action="store_true", help="write, after the same checks and the same forecast"
    )
    # The only words before the sub-command that may stand there are options of other commands.
    index = command_index(arguments, CONNECTION_OPTIONS)
    if index:
        parser.error(f"{arguments[0]} does not go with {RECOVER}, which asks no server")
    return parser.parse_args(arguments[index + 1 :])


def _directories(text: str) -> list[str]:
    directories = [part.strip() for part in text.split(",") if part.strip()]
    if not directories:
        raise argparse.ArgumentTypeError("no directory is named")
    return directories


def _voter(text: str) -> QuorumVoterEntry:
    entries = [part.strip() for part in text.split(",") if part.strip()]
    if len(entries) != 1:
        raise argparse.ArgumentTypeError(
            "exactly one voter: the quorum is recovered from one directory; the other controllers "
            "get empty directories and are added with add-controller"
        )
    try:
        return parse_quorum_voters(entries)[0]
    except InvalidConfigError as error:
        raise argparse.ArgumentTypeError(error.message) from error
