"""Errors that are raised while metadata records are read and replayed.

MetadataError
├── MetadataParseError      bytes that are not a metadata record
├── UnknownFeatureError     a feature or level that does not exist
├── UnwritableMetadataError an image that a level of metadata.version cannot hold
└── ReplayError             a well-formed record that contradicts the records before it
"""


class MetadataError(Exception):
    """The base class of the errors that this package raises."""


class MetadataParseError(MetadataError):
    """Bytes that are not one whole metadata record of a known type and version."""


class UnknownFeatureError(MetadataError, ValueError):
    """A feature name, a level or a version text that does not exist."""


class UnwritableMetadataError(MetadataError):
    """State for which the target metadata.version has no record."""


class ReplayError(MetadataError):
    """A record that cannot follow the records before it; a node that meets one must stop."""
