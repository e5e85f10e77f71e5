"""``kvorum dump-log``: print the contents of log files as kafka-dump-log does."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from kvorum.cli.dump.arguments import Given, WrongUsageError, help_text, parse_words
from kvorum.cli.dump.errors import UNREADABLE
from kvorum.cli.dump.files import DumpOptions, JavaFile, listed_files, print_file
from kvorum.cli.dump.output import Complaints
from kvorum.cli.dump.processes import LostProcessError
from kvorum.cli.progress import Reading, read_progress
from kvorum.cli.unparsed import accept_unparsed
from kvorum.cli.unwritten_output import raise_of_output
from kvorum.inspection.reading import no_report
from kvorum.metadata.reference_release import REFERENCE_RELEASE

NAME = "dump-log"
HELP = "print the contents of log segments, snapshots and indexes"
_PROGRAM: Final = "kvorum dump-log"
_DESCRIPTION: Final = "Print the contents of log segments, snapshots and indexes."


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-dump-log's rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments)


def main(words: Sequence[str]) -> int:
    """Print the files of a command line and return 0, or 1 after wrong usage and damaged files."""
    try:
        given = parse_words(words)
        if given.has("help"):
            print(help_text(_PROGRAM, _DESCRIPTION), end="")
            return 0
        if given.has("version"):
            print(REFERENCE_RELEASE)
            return 0
        if not given.has("files"):
            print('Missing required argument "[files]"', file=sys.stderr)
            print(help_text(_PROGRAM, _DESCRIPTION), end="", file=sys.stderr)
            return 1
        return _print_files(given)
    except WrongUsageError as error:
        sys.stdout.flush()
        print(f"{_PROGRAM}: {error}", file=sys.stderr)
        return 1


def _print_files(given: Given) -> int:
    files = listed_files(given.value("files", ""))
    for word in given.unused:
        print(f"{_PROGRAM}: {word} belongs to no option and is not read", file=sys.stderr)
    options = DumpOptions(given)
    complaints = Complaints()
    with read_progress(_PROGRAM) as reading:
        # On a terminal the output itself shows how far the command is.
        if sys.stdout.isatty():
            reading.tell = no_report
        try:
            for file in files:
                if not _print_file(file, options, complaints, reading):
                    return 1
        except KeyboardInterrupt:
            sys.stdout.flush()
            for line in complaints.lines():
                reading.say(line)
            raise
    for line in complaints.lines():
        print(line, file=sys.stderr)
    return 0


def _print_file(
    file: JavaFile, options: DumpOptions, complaints: Complaints, reading: Reading
) -> bool:
    """Print one file; if it cannot be read, print one line on stderr and return False."""
    try:
        print_file(file, options, complaints, report=reading.tell)
    except BrokenPipeError:
        # The reader of the output has gone, which is not a fault of the file.
        raise
    except OSError as error:
        raise_of_output(error)
        reading.say(f"Cannot read {error.filename or file.text}: {error.strerror}")
        return False
    except UNREADABLE as error:
        sys.stdout.flush()
        reading.say(f"{file.text}: {error}")
        return False
    except LostProcessError:
        reading.say(f"{file.text}: one of the processes that dump it was killed")
        return False
    for line in complaints.now:
        reading.say(line)
    complaints.now.clear()
    return True
