"""The option --fs: what is handed to the file systems of fsspec."""

from __future__ import annotations

import argparse
import json
from typing import Any


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
