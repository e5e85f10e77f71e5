"""``kvorum dump-log``: print the contents of log files as kafka-dump-log does."""

from __future__ import annotations

import argparse
import sys

from kvorum.cli.dump.coordinator_records import MissingKeyError
from kvorum.cli.dump.files import Complaints, file_lines
from kvorum.cli.dump.options import DumpOptions, add_options, read_options
from kvorum.cli.dump.small_files import DamagedFileError
from kvorum.wire.errors import WireError

NAME = "dump-log"
HELP = "print the contents of log segments, snapshots and indexes"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of kafka-dump-log."""
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the files and return the exit code: 1 when one of them could not be read."""
    options = read_options(arguments)
    complaints = Complaints()
    for name in arguments.files.split(","):
        if not _print_file(name, options, complaints):
            return 1
    for line in complaints.lines():
        print(line, file=sys.stderr)
    return 0


def _print_file(name: str, options: DumpOptions, complaints: Complaints) -> bool:
    """Print one file; if it cannot be read, print one line on stderr and return False."""
    try:
        for line in file_lines(name, options, complaints):
            sys.stdout.write(line)
            sys.stdout.write("\n")
    except BrokenPipeError:
        # The reader of the output has gone, which is no fault of the file.
        raise
    except OSError as error:
        print(f"Cannot read {error.filename or name}: {error.strerror}", file=sys.stderr)
        return False
    except (DamagedFileError, MissingKeyError, WireError) as error:
        sys.stdout.flush()
        print(f"{name}: {error}", file=sys.stderr)
        return False
    for line in complaints.now:
        print(line, file=sys.stderr)
    complaints.now.clear()
    return True
