"""``kvorum log``: what the files of a log say, one module of `log_tool` for each subcommand.

A subcommand's module has NAME, HELP, `configure(parser)` and `run(arguments) -> int`, as a
command's own module has.
"""

import argparse
import sys
from typing import Final, cast

from kvorum.cli import FAILED, Command
from kvorum.cli.log_tool import check, decode, diff, image, why
from kvorum.cli.unwritten_output import raise_of_output

NAME: Final = "log"
HELP: Final = "find out what files of logs say, of Kafka or of kvorum, and whether they are sound"
SUBCOMMANDS: Final = tuple(cast("Command", each) for each in (check, decode, image, diff, why))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands with their arguments."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", required=True)
    for subcommand in SUBCOMMANDS:
        added = subcommands.add_parser(
            subcommand.NAME,
            help=subcommand.HELP,
            description=f"{subcommand.HELP[0].upper()}{subcommand.HELP[1:]}.",
        )
        subcommand.configure(added)
        added.set_defaults(subcommand_module=subcommand)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit code."""
    try:
        return cast("Command", arguments.subcommand_module).run(arguments)
    except BrokenPipeError:
        # The reader of the output has gone, which is not a fault of the files.
        raise
    except OSError as error:
        raise_of_output(error)
        file = error.filename or "a file"
        print(f"kvorum log: cannot read {file}: {error.strerror or error}", file=sys.stderr)
        return FAILED
