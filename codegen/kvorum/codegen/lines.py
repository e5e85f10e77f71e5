"""A line buffer that tracks the indentation."""

import re
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

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def drop_unused(self, name: str, since: int) -> None:
        """Remove the assignment to a local, if no line from `since` on uses it."""
        lines = self._lines[since:]
        uses = [line for line in lines if re.search(rf"(?<![\w.\"]){name}(?![\w\"])", line)]
        if len(uses) == 1:
            del self._lines[since + lines.index(uses[0])]

    def text(self) -> str:
        """Return the whole text, with one newline at its end."""
        return "\n".join(self._lines).rstrip("\n") + "\n"
