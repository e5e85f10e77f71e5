"""Lines on standard output, many at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

# Characters; a write of each line would cost more than what is in it.
_PRINTED_AT_ONCE: Final = 1 << 16


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; whatever was yielded before an error is printed as well."""
    waiting: list[str] = []
    size = 0
    try:
        for each in lines:
            waiting.append(each)
            size += len(each)
            if size >= _PRINTED_AT_ONCE:
                _print_all(waiting)
                size = 0
    finally:
        _print_all(waiting)


def _print_all(lines: list[str]) -> None:
    if lines:
        lines.append("")
        text = "\n".join(lines)
        lines.clear()
        sys.stdout.write(text)
