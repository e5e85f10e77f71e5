"""Arguments that several commands have: numbers, times, and options of fsspec's file systems."""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

INT_MAX: Final = 2**31 - 1
"""The largest number of Kafka's 32-bit fields, and of a count that has no smaller limit."""


def whole_number(lowest: int, highest: int = INT_MAX) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number within bounds, both included.

    It raises ArgumentTypeError for other text.
    """

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
        if not lowest <= number <= highest:
            raise argparse.ArgumentTypeError(f"{text} is not a number from {lowest} to {highest}")
        return number

    return parse


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
