"""The error of a file that cannot be decoded at all."""

from __future__ import annotations


class UnknownFileError(Exception):
    """A file of none of the kinds that Kafka writes into a log directory; one line of text."""
