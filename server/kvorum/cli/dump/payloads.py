"""Decoders of record keys and values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvorum.cli.dump.framed_records import UnreadableRecordError
from kvorum.cli.dump.metadata_texts import MetadataTexts
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


class MetadataDecoder:
    """Decodes values as records of the cluster's metadata."""

    def __init__(self) -> None:
        self.texts: Final = MetadataTexts()

    def __call__(self, record: Record) -> Payload:
        """Return the value as JSON; for a record that cannot be read, the error."""
        try:
            return Payload(None, self.texts.text(record.value or b""))
        except UnreadableRecordError as error:
            return Payload(None, f"Error at {record.offset}, skipping. {error}")


def java_text(data: bytes) -> str:
    """Decode UTF-8 as Java does: malformed bytes become replacement characters.

    The only difference to Python is a surrogate in three bytes, for which Java writes a single
    replacement character.
    """
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", errors="replace")
