"""The library that packs and unpacks, which is imported when the first batch needs it."""

from typing import Any

from kvorum.wire.records.compression_type import Compression


def codec(compression: Compression) -> Any:
    """Return the library's module for a compression."""
    import cramjam  # noqa: PLC0415 - only readers of compressed batches need it

    return getattr(cramjam, compression.name.lower())


def codec_error() -> type[Exception]:
    """Return the class of the library's errors for bytes that cannot be unpacked."""
    import cramjam  # noqa: PLC0415 - imported already at this point

    error: type[Exception] = cramjam.DecompressionError
    return error
