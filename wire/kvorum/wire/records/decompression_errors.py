"""The errors of packed records, each with the compression that it is about."""

from typing import Final

from kvorum.wire.errors import BatchTooLargeError, DecompressionError
from kvorum.wire.records.compression_type import Compression

_WHAT: Final = "compressed batch"


def damaged(compression: Compression, problem: str, offset: int = -1) -> DecompressionError:
    """Return the error of packed bytes that cannot be unpacked."""
    return DecompressionError(_WHAT, f"{compression.name.lower()}: {problem}", offset=offset)


def too_large(compression: Compression, size_max: int) -> BatchTooLargeError:
    """Return the error of packed bytes that unpack to more than `size_max`."""
    problem = f"{compression.name.lower()}: unpacks to more than {size_max} bytes"
    return BatchTooLargeError(_WHAT, problem)
