"""The settings of the node that all tests of this folder may ask."""

from typing import Final

FRAME_BYTES_MAX: Final = 1_000_000
"""The largest request that it takes."""
