"""The degrees of trouble with a cluster, or with the files of its log."""

from __future__ import annotations

from enum import IntEnum, unique


@unique
class Trouble(IntEnum):
    """The trouble of a cluster, or of the files of its log."""

    NONE = 0
    DEGRADED = 1
    CRITICAL = 2
