"""The checksum is the package's, loaded without the rest of it."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package

from kvorum.wire.checksums import crc32c


def test_it_is_the_packages_checksum() -> None:
    assert crc32c(b"123456789") == package.crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(memoryview(b"123456789")[0:9]) == 0xE3069283


def test_importing_it_does_not_parse_mail() -> None:
    code = "import sys, kvorum.wire.checksums; sys.exit('email' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
