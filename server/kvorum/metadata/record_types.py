"""Which message each metadata record type is, and what all of them have in common."""

from __future__ import annotations

from typing import ClassVar, Protocol, Self, TypeAlias

from kvorum.metadata.errors import MetadataParseError
from kvorum.wire.apis import METADATA_RECORDS, record_class


class MetadataMessage(Protocol):
    """What the generated class of every metadata record offers."""

    NAME: ClassVar[str]
    API_KEY: ClassVar[int | None]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]

    def encode(self, version: int) -> bytes:
        """Return the body in `version`."""
        ...

    @classmethod
    def decode(cls, data: bytes | memoryview, version: int) -> Self:
        """Return the message whose whole body in `version` is `data`."""
        ...


RecordAndVersion: TypeAlias = tuple[MetadataMessage, int]
"""A record as the controller produces it: the message and the version to write it in."""


def record_type(key: int) -> type[MetadataMessage]:
    """Return the class of the metadata records of type `key`.

    Raises `MetadataParseError` for a type that does not exist: whoever reads such a log is older
    than its writer and must not guess.
    """
    if key not in METADATA_RECORDS:
        raise MetadataParseError(f"unknown metadata record type {key}")
    return record_class(key)
