"""The flushed offset: the end of the log's durable part, which separates damage from torn tails.

After a crash the end of the last segment may hold half a batch that was never acknowledged; it is
right to cut it off. A batch that *was* made durable, and hence may have been acknowledged, must not
be cut off, even if it is the very last one and its bytes are corrupted. The bytes alone do not show
the difference, so this file does: one line with the offset below which everything was synced.

It is written after the log's own sync and before any acknowledgement: in place, 32 bytes within one
sector, which a disk writes whole or not at all, and without a sync of its own. After the death of
the process it is exact, because the operating system keeps what was written. After a power cut it
may be too low, never too high: it is a lower bound. Before a truncation it is replaced, durably, by
a lower one.

One case is left in which damage looks like a torn tail: a power cut loses the last write of this
file, and before the next start a bit of the very last batch flips.

Kafka does not know the file and leaves it alone. Where it is missing, because Kafka wrote the
directory, recovery judges by the bytes alone, and is stricter.
"""

import re
from contextlib import suppress
from pathlib import Path

from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import FileSystem, OpenFile, disk_errors, read_if_there, replace_durably
from kvorum.wire.checksums import crc32c

FLUSHED_OFFSET_FILE = "kvorum-flushed-offset"
_LINE = re.compile(rb"(0 \d{20}) ([0-9a-f]{8})\n")
_ADVICE = "Remove the file; recovery then judges the end of the log by its bytes alone"


def decode_flushed_offset(data: bytes, file: Path) -> int:
    """Return the offset in `data`, the content of `file`; may raise CorruptFileError."""
    found = _LINE.fullmatch(data)
    if found is None or crc32c(found.group(1)) != int(found.group(2), 16):
        raise CorruptFileError("not a flushed offset", file=file, advice=_ADVICE)
    return int(found.group(1)[2:])


class FlushedOffsetFile:
    """The file with the flushed offset of one log directory."""

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self.path = directory / FLUSHED_OFFSET_FILE
        self._files = files
        self._file: OpenFile | None = None

    def read(self) -> int | None:
        """Return the stored offset, or None without a file; may raise CorruptFileError."""
        data = read_if_there(self._files, self.path)
        if data is None:
            return None
        return decode_flushed_offset(data, self.path)

    def write(self, offset: int, *, durably: bool) -> None:
        """Store `offset`; with `durably` return only once it would survive a power cut."""
        text = f"0 {offset:020d}".encode()
        line = text + f" {crc32c(text):08x}\n".encode()
        if durably:
            self.close()
            replace_durably(self._files, self.path, line)
            return
        with disk_errors(self.path, "writing"):
            if self._file is None:
                self._file = self._files.open(self.path)
            self._file.write_at(0, line)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
