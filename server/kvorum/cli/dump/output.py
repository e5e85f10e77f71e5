"""Lines on standard output, many at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

# Characters. A write of each line would cost more than what is in it; the text of many more would
# no longer be in the processor's cache when it is written.
_TOGETHER: Final = 1 << 15


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; whatever was yielded before an error is printed as well."""
    for text in texts_of_lines(lines):
        sys.stdout.write(text)


def texts_of_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield texts of many lines; an error in `lines` comes after the text before it."""
    waiting: list[str] = []
    size = 0
    try:
        for each in lines:
            waiting.append(each)
            size += len(each)
            if size >= _TOGETHER:
                waiting.append("")
                yield "\n".join(waiting)
                waiting.clear()
                size = 0
    except Exception:
        yield "".join(f"{each}\n" for each in waiting)
        raise
    yield "".join(f"{each}\n" for each in waiting)
