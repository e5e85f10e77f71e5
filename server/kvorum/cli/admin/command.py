"""The code that commands for a running cluster share: properties, exit codes, what they log."""

import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.nodes import CONTROLLERS, SERVERS
from kvorum.cli.kafka_arguments import UsageError
from kvorum.storage.errors import PropertiesFormatError
from kvorum.storage.small_files.java_properties import load_java_properties


def exit_code(command: Callable[[], int], *, is_debugging: bool, shows_cause: bool = True) -> int:
    """Run a command and return its exit code, or 1 after wrong usage, refusals and problems.

    `shows_cause` is whether the cause of an error has a line of its own.
    """
    try:
        return command()
    except UsageError:
        return 1
    except SystemExit as error:
        # argparse exits after it has printed the help, or what is wrong with arguments of our own.
        return error.code if isinstance(error.code, int) else 0
    except AdminError as error:
        if is_debugging:
            traceback.print_exc()
        print(error, file=sys.stderr)
        if shows_cause and error.cause:
            print(f"Caused by: {error.cause}", file=sys.stderr)
        return 1


def client_properties(
    file: str | None, *, servers: str | None, controllers: str | None
) -> dict[str, str]:
    """Return the properties of `file`, with the addresses of the command line instead of its own.

    Raises AdminError with the message of Kafka's tools for a file that cannot be read.
    """
    properties = {} if file is None else _read_properties(file)
    properties.pop(SERVERS, None)
    properties.pop(CONTROLLERS, None)
    if servers is not None:
        properties[SERVERS] = servers
    elif controllers is not None:
        properties[CONTROLLERS] = controllers
    return properties


def print_warning(text: str) -> None:
    """Print a warning to standard error, as the logger of Kafka's tools does."""
    _print_log_line("WARN", text)


def print_refused_unregistration(
    client_id: str, kind: str, node_id: int, message: str | None
) -> None:
    """Print what Kafka's admin client logs when a node's registration is not removed.

    `kind` is "broker" or "controller".
    """
    _print_log_line(
        "ERROR",
        f"[AdminClient clientId={client_id}] Unregister {kind} request for {kind} ID {node_id} "
        f"failed: {'null' if message is None else message}",
    )


def _print_log_line(level: str, text: str) -> None:
    now = datetime.now().astimezone()
    stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
    print(f"[{stamp}] {level} {text}", file=sys.stderr)


def _read_properties(file: str) -> dict[str, str]:
    try:
        return load_java_properties(Path(file).read_bytes())
    except (FileNotFoundError, PermissionError) as error:
        # Java's message is the name of the file alone.
        raise AdminError(file) from error
    except OSError as error:
        raise AdminError(str(error.strerror)) from error
    except PropertiesFormatError as error:
        raise AdminError(str(error)) from error
