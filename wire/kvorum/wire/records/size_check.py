"""Checks of the size that bytes reach while they are packed or unpacked."""

from collections.abc import Callable
from typing import Final, TypeAlias

from kvorum.wire.errors import BatchTooLargeError
from kvorum.wire.records.compression_type import Compression

_WHAT: Final = "compressed batch"
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
            problem = f"{compression.name.lower()}: unpacks to more than {size_max} bytes"
            raise BatchTooLargeError(_WHAT, problem)

    return check_size
