"""Errors that end the dump of a file; the text of each is one line of the output."""

from typing import Final

from kvorum.wire.errors import WireError


class DamagedFileError(ValueError):
    """A file that violates its format; the text names the violation."""


class DecoderFailedError(Exception):
    """A key or a value that a decoder does not accept; the text names the decoder."""


class MissingKeyError(ValueError):
    """A record without a key in a topic whose records all have one."""


UNREADABLE: Final = (DamagedFileError, DecoderFailedError, MissingKeyError, WireError)
"""All of them."""
