"""``kvorum shell``: look around in a cluster's metadata, as kafka-metadata-shell does."""

import argparse
import shutil
import sys
import traceback
from collections.abc import Sequence

from kvorum.cli.shell_tool.session import (
    BANNER,
    HelpPrintedError,
    Root,
    Session,
    WrongUsageError,
    opened_source,
    read_arguments,
    run_lines,
    run_once,
)
from kvorum.cli.unparsed import accept_unparsed
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.shell.image_tree import DanglingNameError

NAME = "shell"
HELP = "look around in the metadata of a snapshot, a directory or a running quorum"


def configure(parser: argparse.ArgumentParser) -> None:
    """Accept the command line unparsed: kafka-metadata-shell's rules for it differ from ours."""
    accept_unparsed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run one command line and return the exit code."""
    return main(arguments.arguments, is_debugging=arguments.debug)


def main(words: Sequence[str], *, is_debugging: bool = False) -> int:
    """Run one command line and return 0, or 1 after wrong usage and problems."""
    try:
        arguments = read_arguments(words)
        with opened_source(arguments, warn=_warn) as root:
            if arguments.command:
                run_once(root, arguments.command)
            else:
                _read_commands(root)
    except HelpPrintedError:
        return 0
    except WrongUsageError:
        return 1
    except (MetadataSourceError, DanglingNameError) as error:
        sys.stdout.flush()
        print(f"Unexpected error: {error}", file=sys.stderr)
        if is_debugging:
            traceback.print_exc()
        return 1
    return 0


def _read_commands(root: Root) -> None:
    """Run the commands that are typed, or that the standard input has."""
    # Kafka's shell prints these lines when it has opened its source.
    print("Loading...", "Starting...", BANNER, sep="\n")
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    session = Session(root, lambda: shutil.get_terminal_size().columns if is_terminal else None)
    if is_terminal:
        try:
            from kvorum.cli.shell_tool.terminal import run_at_terminal  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            _warn("for completion and history at the prompt, install prompt_toolkit: kvorum[tools]")
        else:
            run_at_terminal(session)
            return
    run_lines(session)


def _warn(text: str) -> None:
    print(f"kvorum shell: {text}", file=sys.stderr)
