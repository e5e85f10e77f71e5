"""The signs of a torn tail: the end of a file whose last batch was not written to its end."""

from kvorum.storage.log.batch_header import (
    HEADER_SIZE,
    LENGTH_FIELD_END,
    checksum_matches,
    read_header,
)

# Zeros this long at the end of a file are blocks that were never written, not a batch's last bytes.
_ZERO_RUN_MIN = 512


def looks_torn(rest: memoryview) -> bool:
    """Return whether `rest`, the bytes after a file's last whole batch, is an unfinished write.

    That is a batch that the end of the file cuts off, unless only its length field is wrong; or
    bytes that end in zeros, which the file system put in place of unwritten blocks.
    """
    zeros = len(rest) - len(bytes(rest).rstrip(b"\0"))
    if zeros == len(rest) or zeros >= _ZERO_RUN_MIN or len(rest) < HEADER_SIZE:
        return True
    header = read_header(rest)
    if header.problem() is not None or header.size <= len(rest):
        return False
    # The batch is cut off, unless only its length field is wrong and all its bytes are there.
    return header.length > LENGTH_FIELD_END and not checksum_matches(rest, header.crc)
