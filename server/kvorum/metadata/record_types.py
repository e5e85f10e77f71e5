"""Message classes of the metadata record types."""

import re
from typing import Final, TypeAlias

from kvorum.metadata.errors import MetadataParseError
from kvorum.wire.apis import METADATA_RECORDS, record_class
from kvorum.wire.primitives import Message

_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

RecordAndVersion: TypeAlias = tuple[Message, int]
"""A record as the controller produces it: the message and the version to write it in."""


def record_type(key: int) -> type[Message]:
    """Return the class of the metadata records of type `key`.

    Raises `MetadataParseError` for an unknown type: a newer release wrote the log, and its records
    must not be guessed at.
    """
    if key not in METADATA_RECORDS:
        raise MetadataParseError(f"unknown metadata record type {key}")
    return record_class(key)


def record_type_name(kind: type[Message]) -> str:
    """Return the name that Kafka's tools give a record type: TOPIC_RECORD for TopicRecord."""
    return _WORD_START.sub("_", kind.NAME).upper()
