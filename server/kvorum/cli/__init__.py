"""The ``kvorum`` command: one module for each of its commands.

A command's module has NAME, HELP, `configure(parser)` and `run(arguments) -> int`. Exit codes: 0
success, 1 the operation failed, 2 wrong usage, 130 Ctrl-C interrupted it, 141 the reader of the
output closed it before the end. A signal stops ``dev`` and ``server`` in good order: 0, or 128 and
the number of a second signal, if that ended the waits of the stop. An error is one line on stderr
with the problem, its place and advice; ``--debug`` adds the traceback.
"""

import argparse
import importlib
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Final, Protocol, cast

from kvorum.cli.broken_pipe import READER_GONE, flush_output, silence_output
from kvorum.cli.command_parser import CommandParser
from kvorum.cli.encodings import replace_what_is_lacking
from kvorum.cli.unwritten_output import UnwrittenOutputError, discard_unwritten, no_space
from kvorum.node.version import VERSION

OK: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
SIGNALLED: Final = 128
INTERRUPTED: Final = SIGNALLED + signal.SIGINT
INTERRUPTION: Final = "interrupted"
COMMANDS: Final = {
    "dev": "kvorum.cli.dev",
    "server": "kvorum.cli.server",
    "storage": "kvorum.cli.storage",
    "quorum": "kvorum.cli.quorum",
    "cluster": "kvorum.cli.cluster",
    "features": "kvorum.cli.features",
    "dump-log": "kvorum.cli.dump_log",
    "shell": "kvorum.cli.shell",
    "log": "kvorum.cli.log",
    "check-history": "kvorum.cli.check_history",
    "pipeline": "kvorum.cli.pipeline",
    "report": "kvorum.cli.report",
    "simulate": "kvorum.cli.simulate",
}
"""The module of each command; only that of the command given is imported."""


class Command(Protocol):
    """The module of a command."""

    NAME: str
    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""
        ...

    def run(self, args: argparse.Namespace, /) -> int:
        """Run the command and return the exit code."""
        ...


class UsageError(Exception):
    """The arguments of a command are invalid; the text is one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    replace_what_is_lacking(sys.stdout)
    try:
        code = _run(arguments)
        flush_output()
    except KeyboardInterrupt:
        # While the modules of the command were imported, or after its end.
        print(f"{_program(arguments)}: {INTERRUPTION}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        if not silence_output():
            raise
        return READER_GONE
    except OSError:
        unwritten = discard_unwritten()
        if unwritten is None:
            raise
        print(f"{_program(arguments)}: {UnwrittenOutputError(unwritten)}", file=sys.stderr)
        return FAILED
    return code


def _run(arguments: Sequence[str]) -> int:
    """Run one command line; raise BrokenPipeError if the reader of its output has closed it."""
    try:
        parsed = _parser(arguments).parse_args(arguments)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else WRONG_USAGE
    name = cast("str", parsed.command)
    try:
        return _load(name).run(parsed)
    except UsageError as error:
        return _complain(name, error, WRONG_USAGE, is_debugging=parsed.debug)
    except KeyboardInterrupt as error:
        text = str(error) or INTERRUPTION
        return _complain(name, text, INTERRUPTED, is_debugging=parsed.debug)
    except BrokenPipeError as error:
        if silence_output():
            return READER_GONE
        return _complain(name, _error_text(error), FAILED, is_debugging=parsed.debug)
    except OSError as error:
        return _complain(name, _os_error_text(error), FAILED, is_debugging=parsed.debug)
    except Exception as error:  # noqa: BLE001 - any error becomes one line
        return _complain(name, _error_text(error), FAILED, is_debugging=parsed.debug)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the requested command has its arguments."""
    parser = CommandParser(
        prog="kvorum", description="Apache Kafka's metadata quorum (KRaft) in Python."
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    parser.add_argument("--version", action="version", version=f"kvorum {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = _command_in(arguments)
    for name in COMMANDS:
        if asked is not None and asked != name:
            commands.add_parser(name)
            continue
        command = _load(name)
        description = f"{command.HELP[0].upper()}{command.HELP[1:]}."
        command.configure(commands.add_parser(name, help=command.HELP, description=description))
    return parser


def _command_in(arguments: Sequence[str]) -> str | None:
    """Return the command that a command line asks for, which may not exist."""
    return next((word for word in arguments if not word.startswith("-")), None)


def _program(arguments: Sequence[str]) -> str:
    """Return the command that a command line asks for, as it is typed."""
    name = _command_in(arguments)
    return f"kvorum {name}" if name in COMMANDS else "kvorum"


def _load(name: str) -> Command:
    return cast("Command", importlib.import_module(COMMANDS[name]))


def _error_text(error: Exception) -> str:
    """Return an error as one line; an unexpected one includes its type."""
    text = " ".join(str(error).split())
    if type(error).__module__.startswith("kvorum."):
        return text
    return f"{type(error).__name__}: {text} (this is a defect: --debug shows where)"


def _os_error_text(error: OSError) -> str:
    """Return an error of the system as one line; one of the output is no defect."""
    unwritten = discard_unwritten()
    if unwritten is not None:
        return str(UnwrittenOutputError(unwritten))
    return f"cannot write: {error.strerror}" if no_space(error) else _error_text(error)


def _complain(name: str, error: object, code: int, *, is_debugging: bool) -> int:
    if is_debugging:
        traceback.print_exc()
    print(f"kvorum {name}: {error}", file=sys.stderr)
    return code
