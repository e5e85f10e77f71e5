"""Options that name a moment of a metadata log."""

import argparse

from kvorum.cli.shared_arguments import time_ms
from kvorum.inspection.moment import Moment


def offset(text: str) -> int:
    """Return an offset; ArgumentTypeError for other text."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not an offset")
    return int(text)


def add_moment(parser: argparse.ArgumentParser) -> None:
    """Add the options for one moment; without them it is the end of the log."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--at",
        type=offset,
        metavar="OFFSET",
        help="as of the record at this offset (default: the last one)",
    )
    group.add_argument(
        "--time",
        type=time_ms,
        metavar="TIME",
        help="as of this time, in ISO 8601, UTC where it names no zone",
    )


def moment_of(arguments: argparse.Namespace) -> Moment:
    """Return the moment that the options name."""
    return Moment(arguments.at, arguments.time)
