"""The types of compression that a batch can have."""

from enum import IntEnum


class Compression(IntEnum):
    """The compression of a batch's records: the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
