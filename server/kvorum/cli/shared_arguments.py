"""Arguments that several commands have: times, and options of the file systems of fsspec."""

import argparse
import json
from datetime import UTC, datetime
from typing import Any


def time_ms(text: str) -> int:
    """Return an ISO 8601 time in milliseconds since 1970; it is in UTC where it names no zone.

    Raises ArgumentTypeError for other text.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-11-17 or 2026-11-17T14:30"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)


def add_fs_option(parser: argparse.ArgumentParser) -> None:
    """Add the option; its values are pairs of a key and a value."""
    parser.add_argument(
        "--fs",
        action="append",
        default=[],
        type=_key_and_value,
        metavar="KEY=VALUE",
        help="an option of fsspec's file system, its value in JSON or as it is",
    )


def _key_and_value(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not key or not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
