"""Checks of the size that bytes reach while they are packed or unpacked."""

from collections.abc import Callable
from typing import TypeAlias

from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression_errors import too_large

SizeCheck: TypeAlias = Callable[[int], None]
"""Takes the size that bytes have reached, in bytes, and raises an error to end the work."""


def any_size(_: int) -> None:
    """Allow any size."""


def up_to(size_max: int, compression: Compression) -> SizeCheck:
    """Return a check that raises `BatchTooLargeError` for more than `size_max` unpacked bytes."""
    if compression is Compression.NONE:
        return any_size

    def check_size(size: int) -> None:
        if size > size_max:
            raise too_large(compression, size_max)

    return check_size
