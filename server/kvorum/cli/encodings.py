"""Text and bytes that the encoding of a standard stream lacks."""

from typing import TextIO


def replace_what_is_lacking(stream: TextIO) -> None:
    """Have question marks printed and U+FFFD read in place of errors, as in Java."""
    # The replacement that a test puts there has no encoding.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
