"""What can go wrong while metadata records are read and folded.

MetadataError
├── MetadataParseError      bytes that are not a metadata record
├── UnknownFeatureError     a feature or level nobody knows
├── UnwritableMetadataError an image that a level of metadata.version cannot hold
└── ReplayError             a well-formed record that contradicts the records before it
"""

from __future__ import annotations


class MetadataError(Exception):
    """Root of everything this package raises."""


class MetadataParseError(MetadataError):
    """Bytes that are not one whole metadata record of a known type and version."""


class UnknownFeatureError(MetadataError, ValueError):
    """A feature name, a level or a version text that does not exist."""


class UnwritableMetadataError(MetadataError):
    """State that the wanted metadata.version has no record for."""


class ReplayError(MetadataError):
    """A record that cannot follow the records before it; a node that meets one must stop."""
