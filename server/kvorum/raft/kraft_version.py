"""The kraft.version levels that this release can work at."""

from typing import Final

KRAFT_VERSION_MIN: Final = 0
"""The level of voters that stand in the configuration, not in the log."""
KRAFT_VERSION_MAX: Final = 1
"""The level of voters that are records of the log (KIP-853)."""
