"""``kvorum log decode``: all that files of logs contain, as lines of JSON."""

import argparse
import json
import sys
from pathlib import Path

from kvorum.cli import FAILED, OK, UsageError
from kvorum.cli.log_tool import PROGRAM
from kvorum.cli.progress import Reading, read_progress
from kvorum.inspection.decoding.files import DAMAGE, UnknownFileError, file_objects, files_below
from kvorum.inspection.reading import GONE, no_report

NAME = "decode"
HELP = "print everything that is in files of a log directory as JSON, an object a line"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the paths and options."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="a file of any kind that Kafka writes, or a directory with such files below it",
    )
    parser.add_argument(
        "--topic",
        metavar="NAME",
        help="the topic that segments are of (default: what the name of their directory says)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the objects; return 1 where there was damage among them."""
    is_sound = True
    with read_progress(PROGRAM) as reading:
        # On a terminal the output itself shows how far the command is.
        if sys.stdout.isatty():
            reading.tell = no_report
        for path in arguments.paths:
            files = files_below(path)
            if not files:
                raise UsageError(f"{path}: no file of a log is below it")
            for file in files:
                try:
                    is_sound = _print_objects(file, arguments.topic, reading) and is_sound
                except FileNotFoundError:
                    if file == path:
                        raise
                    # A running node removes and renames files.
                    sys.stdout.flush()
                    reading.warn(f"{file}: {GONE}")
    return OK if is_sound else FAILED


def _print_objects(file: Path, topic: str | None, reading: Reading) -> bool:
    """Print the objects of one file, and return whether it has no damage."""
    is_sound = True
    try:
        for found in file_objects(file, topic, tell=reading.tell):
            is_sound = is_sound and found["type"] != DAMAGE
            print(json.dumps({"file": str(file), **found}, ensure_ascii=False))
    except UnknownFileError as error:
        sys.stdout.flush()
        reading.warn(str(error))
        return False
    return is_sound
