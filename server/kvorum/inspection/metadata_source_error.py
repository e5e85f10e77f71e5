"""The error of a source of metadata that cannot be read."""


class MetadataSourceError(Exception):
    """A source of metadata cannot be read; the text is one line."""
