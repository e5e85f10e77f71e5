"""CRC-32C, the checksum of batches and of small files."""

from crc32c import crc32c

__all__ = ["crc32c"]
