"""Command lines that are handed on as they are: the rules of Kafka's tools differ from argparse's.

A module of its own, as some commands have to start quickly.
"""

import argparse
from typing import Final

_PREFIX_OF_NO_OPTION: Final = "\0"


def accept_unparsed(parser: argparse.ArgumentParser) -> None:
    """Accept the words of a command line as `arguments`, unparsed."""
    parser.prefix_chars = _PREFIX_OF_NO_OPTION
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
