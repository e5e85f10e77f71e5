"""Decoders of record keys and values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kvorum.metadata.errors import MetadataError
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.record_types import record_type_name
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import to_json
from kvorum.wire.primitives import Message
from kvorum.wire.records import Record

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


@dataclass(frozen=True, slots=True)
class Payload:
    """The texts of a record's key and value; None is not printed at all."""

    key: str | None
    value: str | None


# A function that returns the texts to print for a record.
Decoder = Callable[[Record], Payload]


def decode_text(record: Record) -> Payload:
    """Decode key and value as UTF-8 text."""
    return Payload(_text(record.key), _text(record.value))


def decode_cluster_metadata(record: Record) -> Payload:
    """Decode the value as a record of the cluster's metadata."""
    try:
        message, version = decode_record(record.value or b"")
        assert isinstance(message, Message)
        fields = {
            "type": record_type_name(type(message)),
            "version": version,
            "data": to_json(message, version),
        }
        return Payload(None, json_text(fields))
    except (MetadataError, WireError) as error:
        return Payload(None, f"Error at {record.offset}, skipping. {error}")


def java_text(data: bytes) -> str:
    """Decode UTF-8 as Java does: malformed bytes become replacement characters.

    The only difference to Python is a surrogate in three bytes, for which Java writes a single
    replacement character.
    """
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", errors="replace")


def _text(data: bytes | None) -> str | None:
    return None if data is None else java_text(data)
