"""A field as it was read from a file; text files are read without the library construct."""

from typing import NamedTuple


class Field(NamedTuple):
    """A field that was read: its path in the layout, its first byte, the byte after it, its value.

    A field that consists of others comes after them.
    """

    path: str
    start: int
    end: int
    value: object
