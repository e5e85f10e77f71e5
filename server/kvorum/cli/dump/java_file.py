"""Names of files as Java's File treats and prints them: never resolved, only tidied up."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_SLASHES = re.compile("/+")
_OFFSET = re.compile(r"[+-]?[0-9]{1,40}")
_OFFSET_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class JavaFile:
    """A file by the text of its path, as `tidied` returns it."""

    text: str

    @property
    def absolute(self) -> str:
        """The path from the root on; `.` and `..` stay in it."""
        if self.text.startswith("/"):
            return self.text
        return f"{Path.cwd()}/{self.text}" if self.text else str(Path.cwd())

    @property
    def name(self) -> str:
        """The part after the last slash."""
        return self.text.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The part from the last dot of the name on; empty without one."""
        _, dot, ending = self.name.rpartition(".")
        return dot + ending

    @property
    def stem(self) -> str:
        """The part before the first dot of the name."""
        return self.name.partition(".")[0]

    @property
    def base_offset(self) -> int | None:
        """The offset that the name begins with; None where it does not."""
        if not _OFFSET.fullmatch(self.stem):
            return None
        offset = int(self.stem)
        return offset if -_OFFSET_LIMIT <= offset < _OFFSET_LIMIT else None

    @property
    def path(self) -> Path:
        """The path for opening the file."""
        return Path(self.text)

    def neighbour(self, suffix: str) -> Path:
        """Return the path of the file of the same segment with another suffix."""
        return Path(os.path.dirname(self.absolute), self.stem + suffix)  # noqa: PTH120 - keeps ".."


def tidied(text: str) -> JavaFile:
    """Return a file as its path is given; slashes that mean nothing are dropped."""
    single = _SLASHES.sub("/", text)
    return JavaFile(single.removesuffix("/") if single != "/" else single)


def listed_files(text: str) -> list[JavaFile]:
    """Return the files of a list separated by commas; empty names count, except at its end."""
    if not text:
        return [JavaFile("")]
    names = text.split(",")
    while names and not names[-1]:
        names.pop()
    return [tidied(name) for name in names]
