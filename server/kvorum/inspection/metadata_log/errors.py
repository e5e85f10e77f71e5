"""The error of a source of metadata."""

from __future__ import annotations


class MetadataSourceError(Exception):
    """A source of metadata cannot be read; the text is one line."""
