"""Ranges of message versions: `3`, `1-4`, `2+`, `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kvorum.codegen.errors import CodegenError

VERSION_MAX = 32_767
_TEXT = re.compile(r"(\d+)(?:(\+)|-(\d+))?\Z")


@dataclass(frozen=True, slots=True)
class Versions:
    """Every version from `lowest` to `highest`, both included; none if the range is empty."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read the text form; raises `CodegenError`."""
        if text == "none":
            return NONE
        match = _TEXT.match(text)
        if match is None:
            raise CodegenError(f"not a range of versions: {text!r}")
        lowest = int(match[1])
        if match[2]:
            return cls(lowest, VERSION_MAX)
        return cls(lowest, int(match[3]) if match[3] else lowest)

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return both or NONE

    def each(self) -> range:
        """Every version of a closed range."""
        return range(self.lowest, self.highest + 1)


NONE = Versions(0, -1)
ALL = Versions(0, VERSION_MAX)
