"""The errors of schemas and jars."""


class CodegenError(Exception):
    """A schema, or the jar that should contain it, is invalid; the text is one line."""
