"""CRC-32C, the checksum of batches and of small files."""

# CRC-32C is known as CRC-32/ISCSI in the catalogue of checksums that the package follows.
from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
