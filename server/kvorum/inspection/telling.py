"""The progress of a reading, for a user who waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

Tell: TypeAlias = Callable[[Path, int], None]
"""Takes a file that is being read, and the bytes of it that have been."""


def no_report(file: Path, position: int) -> None:
    """Take in how far a reading has come, and do nothing."""
