"""Records of the coordinators' topics as kafka-dump-log prints them."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.cli.dump.payloads import Payload
from kvorum.internal_topics.coordinator_records import CoordinatorTopic
from kvorum.internal_topics.errors import InternalTopicError, UnknownRecordTypeError
from kvorum.metadata.json_text import json_text
from kvorum.wire.records import Record


class MissingKeyError(ValueError):
    """A record without a key in a topic whose records all have one."""


@dataclass(frozen=True, slots=True)
class CoordinatorDecoder:
    """Decodes the records of one coordinator's topic."""

    topic: CoordinatorTopic

    def __call__(self, record: Record) -> Payload:
        """Return key and value as JSON; for a record that cannot be read, the error is the key."""
        if record.key is None:
            raise MissingKeyError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            key = self.topic.decode_key(record.key)
            value = self._value(key.type_id, record.value)
        except UnknownRecordTypeError as error:
            problem = f"Unknown record type {error.type_id} at offset {record.offset}, skipping."
            return Payload(problem, None)
        except InternalTopicError as error:
            return Payload(f"Error at offset {record.offset}, skipping. {error}", None)
        return Payload(json_text({"type": str(key.type_id), "data": key.fields}), value)

    def _value(self, type_id: int, data: bytes | None) -> str:
        if data is None:
            return "<DELETE>"
        value = self.topic.decode_value(type_id, data)
        return json_text({"version": str(value.version), "data": value.fields})
