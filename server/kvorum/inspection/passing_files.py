"""Files on their way out or in: cleaned or deleted ones, unfinished snapshots and checkpoints."""

from __future__ import annotations

import re
from typing import Final

_PASSING: Final = re.compile(r"\.(deleted|cleaned|swap|part|tmp)\Z")


def is_passing(name: str) -> bool:
    """Return whether a file is about to be removed, or to be put in place."""
    return _PASSING.search(name) is not None


def lasting_name(name: str) -> str:
    """Return the name that a file had before it was to be removed, or has once it is in place."""
    return _PASSING.sub("", name)
