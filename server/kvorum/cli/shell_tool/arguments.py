"""The command line of ``kvorum shell``: kafka-metadata-shell's, and the sources that are ours."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.inspection.shell.grammar import (
    HELP,
    Count,
    Grammar,
    GrammarError,
    HelpAskedError,
    Option,
    Positional,
    parse,
)
from kvorum.inspection.shell.help_text import (
    WIDTH_DEFAULT,
    grammar_lines,
    grammar_usage,
    usage_lines,
    wrapped_lines,
)

PROGRAM: Final = "kvorum shell"
DESCRIPTION: Final = "The metadata shell: a cluster's metadata as a tree."
SNAPSHOT: Final = Option(
    ("--snapshot", "-s"), "The metadata snapshot file to read.", metavar="SNAPSHOT"
)
DIRECTORY: Final = Option(
    ("--directory", "-d"),
    "The metadata log directory to read: its latest snapshot and its log.",
    metavar="DIRECTORY",
)
CONTROLLERS: Final = Option(
    ("--bootstrap-controller", "-b"),
    "The controllers of a running quorum, as host:port,host:port.",
    metavar="CONTROLLERS",
)
CONFIG: Final = Option(
    ("--command-config",),
    "The properties file with the security settings for the connection to the controllers.",
    metavar="FILE",
)
SOURCES: Final = (SNAPSHOT, DIRECTORY, CONTROLLERS)
GRAMMAR: Final = Grammar(
    Positional("command", Count.ANY, "The command to run; none for reading commands."),
    (HELP, *SOURCES, CONFIG),
)
_MARGIN: Final = 5


class WrongUsageError(Exception):
    """A command line that cannot be run, or that asks for help; what to say is printed."""


class Arguments(NamedTuple):
    """The place of the metadata, and the command to run; no command for reading commands."""

    source: Option
    place: str
    config: str | None
    command: tuple[str, ...]


def read_arguments(words: Sequence[str]) -> Arguments:
    """Return what a command line says; `WrongUsageError` after its message is printed."""
    try:
        parsed = parse(GRAMMAR, words)
        given = [source for source in SOURCES if source.name in parsed.values]
        names = " ".join("/".join(source.flags) for source in SOURCES)
        if not given:
            raise GrammarError(f"one of the arguments {names} is required")
        if len(given) > 1:
            first, second = ("/".join(source.flags) for source in given[:2])
            raise GrammarError(f"argument {second}: not allowed with argument {first}")
        if CONFIG.name in parsed.values and given != [CONTROLLERS]:
            raise GrammarError("argument --command-config: only with --bootstrap-controller")
    except HelpAskedError:
        width = help_width()
        description = ["", *wrapped_lines(DESCRIPTION, width)]
        print("\n".join([*_usage(width), *description, *grammar_lines(GRAMMAR, width)]))
        raise WrongUsageError from None
    except GrammarError as error:
        width = help_width()
        for line in [*_usage(width), *wrapped_lines(f"{PROGRAM}: error: {error}", width)]:
            print(line, file=sys.stderr)
        raise WrongUsageError from None
    (source,) = given
    config = parsed.values.get(CONFIG.name)
    return Arguments(source, parsed.values[source.name], config, parsed.words)


def help_width() -> int:
    """Return how wide help screens may be: a little less than the terminal."""
    columns = os.environ.get("COLUMNS")
    try:
        if columns is not None:
            width = int(columns)
        else:
            with Path("/dev/tty").open("rb") as terminal:
                width = os.get_terminal_size(terminal.fileno()).columns
    except (OSError, ValueError):
        return WIDTH_DEFAULT
    return width - _MARGIN if width > _MARGIN else WIDTH_DEFAULT


def _usage(width: int) -> Iterator[str]:
    return usage_lines(PROGRAM, grammar_usage(GRAMMAR), width)
