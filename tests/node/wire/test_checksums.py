"""The checksum is CRC-32C, continued from a value where there is one."""

from kvorum.wire.checksums import crc32c


def test_it_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(memoryview(b"123456789")[0:9]) == 0xE3069283
