"""Records of the coordinators' topics as kafka-dump-log prints them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final, cast

from kvorum.cli.dump.errors import MissingKeyError
from kvorum.cli.dump.payloads import Payload
from kvorum.internal_topics.coordinator_records import TRANSACTION_STATE, CoordinatorTopic
from kvorum.internal_topics.errors import DamagedRecordError, UnknownRecordTypeError
from kvorum.internal_topics.states import TRANSACTION_STATES
from kvorum.metadata.json_text import json_text
from kvorum.wire.errors import DecodeError
from kvorum.wire.json_form import Json
from kvorum.wire.records import Record

_NUMBER: Final = struct.Struct(">h")
_STATE: Final = "transactionStatus"
_BEYOND_END: Final = re.compile(r".* of length (?P<length>\d+), but (?P<left>\d+) bytes are left")


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
        except UnknownRecordTypeError as error:
            problem = f"Unknown record type {error.type_id} at offset {record.offset}, skipping."
            return Payload(problem, None)
        except DamagedRecordError as error:
            return _skipped(record, _problem("key", record.key, error))
        try:
            value = self._value(key.type_id, record.value)
        except DamagedRecordError as error:
            problem = _problem("value", record.value or b"", error, type_id=key.type_id)
            return _skipped(record, problem)
        return Payload(json_text({"type": str(key.type_id), "data": key.fields}), value)

    def _value(self, type_id: int, data: bytes | None) -> str:
        if data is None:
            return "<DELETE>"
        value = self.topic.decode_value(type_id, data)
        fields = value.fields
        if self.topic is TRANSACTION_STATE:
            fields = _with_state_name(fields)
        return json_text({"version": str(value.version), "data": fields})


def _with_state_name(fields: Json) -> Json:
    """Name the state of a transaction, as Kafka does from 4.4.0 on."""
    named = cast("dict[str, Json]", fields)
    state = named[_STATE]
    assert isinstance(state, int)
    return {**named, _STATE: TRANSACTION_STATES.get(state, str(state))}


def _skipped(record: Record, problem: str) -> Payload:
    return Payload(f"Error at offset {record.offset}, skipping. {problem}", None)


def _problem(part: str, data: bytes, error: DamagedRecordError, *, type_id: int = 0) -> str:
    """Return what Kafka says of a key or a value that cannot be read."""
    if len(data) < _NUMBER.size:
        return f"Could not read version from {part}'s buffer."
    (version,) = _NUMBER.unpack_from(data)
    if not isinstance(error.__cause__, DecodeError):
        return f"Found an unknown record version {version} for {type_id} type"
    cause = _java_problem(error.__cause__)
    return f"Could not read record with version {version} from {part}'s buffer due to: {cause}."


def _java_problem(error: DecodeError) -> str:
    """Return what Java says about bytes that end in a number or in an array; else our own words."""
    if error.problem == "ends too early":
        return "null"
    found = _BEYOND_END.fullmatch(error.problem)
    if found is None:
        return error.problem
    length, left = found["length"], found["left"]
    return f"Error reading byte array of {length} byte(s): only {left} byte(s) available"
