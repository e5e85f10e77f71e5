"""What can be wrong with a schema or a jar."""

from __future__ import annotations


class CodegenError(Exception):
    """A schema, or a jar it was to be taken from, is not what it should be; one line."""
