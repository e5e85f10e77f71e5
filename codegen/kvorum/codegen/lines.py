"""A line buffer that keeps the indentation."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class Lines:
    """Source text under construction."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def add(self, *lines: str) -> None:
        """Append lines at the current depth."""
        self._lines.extend("    " * self._depth + line if line else "" for line in lines)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Append `head` and indent what follows inside the with-block."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """Everything so far, ending in one newline."""
        return "\n".join(self._lines).rstrip("\n") + "\n"
