"""The trace of a world: lines for a human reader, and one hash of everything."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b


class Trace:
    """The lines of a run, in order, with the world's time in seconds; kept only on request.

    The digest covers everything passed to `say` and `mix`, kept or not: equal runs have equal ones.
    """

    def __init__(self, now_ms: Callable[[], float], *, is_kept: bool) -> None:
        self.lines: list[str] = []
        self.is_kept = is_kept
        self.said_count = 0
        self._now_ms = now_ms
        self._hash = blake2b(digest_size=16)

    def say(self, text: str) -> None:
        """Add a line that is part of the digest."""
        self.said_count += 1
        self._hash.update(f"{self._now_ms()!r} {text}\n".encode())
        self.add(text)

    def mix(self, text: str, data: bytes) -> None:
        """Add bytes to the digest that no line shows, such as a frame."""
        self.said_count += 1
        self._hash.update(f"{self._now_ms()!r} {text}\n".encode())
        self._hash.update(data)

    def add(self, text: str) -> None:
        """Add a line for readers only."""
        if self.is_kept:
            self.lines.append(f"{self._now_ms() / 1000:10.4f}  {text}")

    @property
    def digest(self) -> str:
        """The hash so far, in hexadecimal."""
        return self._hash.hexdigest()

    def text(self) -> str:
        """Return all lines that were kept."""
        return "".join(f"{line}\n" for line in self.lines)
