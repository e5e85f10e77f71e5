"""Decoders of record keys and values: Python functions, Kafka's own, and the coordinators'."""

import importlib
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception's name
from types import MappingProxyType
from typing import Final, cast

from kvorum.cli.dump.arguments import WrongUsageError
from kvorum.cli.dump.errors import DecoderFailedError, MissingKeyError
from kvorum.cli.dump.metadata_texts import MetadataTexts, UnreadableRecordError
from kvorum.internal_topics.coordinator_records import TRANSACTION_STATE, CoordinatorTopic
from kvorum.internal_topics.errors import DamagedRecordError, UnknownRecordTypeError
from kvorum.internal_topics.states import TRANSACTION_STATES
from kvorum.metadata.json_text import json_text
from kvorum.wire.errors import DecodeError
from kvorum.wire.json_form import Json
from kvorum.wire.records import Record

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
ENTRY_POINTS: Final = "kvorum.decoders"
"""The group of entry points whose names are taken for decoders."""

STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"
BytesDecoder = Callable[[bytes], object]
"""Makes an object, whose text is printed, of a key or a value that is not null."""
_NUMBER: Final = struct.Struct(">h")
_STATE: Final = "transactionStatus"
_BEYOND_END: Final = re.compile(r".* of length (?P<length>\d+), but (?P<left>\d+) bytes are left")


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


@dataclass(frozen=True, slots=True)
class NamedDecoder:
    """A decoder, and the name that the command line has for it."""

    name: str
    function: BytesDecoder

    def text(self, data: bytes | None, offset: int) -> str | None:
        """Return the text of a key or a value, None for null; may raise `DecoderFailedError`."""
        if data is None:
            return None
        try:
            return str(self.function(data))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise DecoderFailedError(
                f"{self.name} failed at the record of offset {offset}: {problem}"
            ) from error


@dataclass(frozen=True, slots=True)
class KeyValueDecoder:
    """Decodes keys with one decoder, and values with another."""

    key: NamedDecoder
    value: NamedDecoder

    @property
    def is_kafkas(self) -> bool:
        """Whether both are decoders of Kafka's."""
        return self.key.name in _KAFKAS and self.value.name in _KAFKAS

    def __call__(self, record: Record) -> Payload:
        """Return the texts of key and value."""
        return Payload(
            self.key.text(record.key, record.offset), self.value.text(record.value, record.offset)
        )


def named_decoder(name: str) -> NamedDecoder:
    """Return the decoder of a name; WrongUsageError without one."""
    return NamedDecoder(name, _KAFKAS.get(name) or _python_function(name))


def _python_function(name: str) -> BytesDecoder:
    try:
        found = _imported(name) if ":" in name else _entry_point(name)
    except (ImportError, AttributeError) as error:
        raise WrongUsageError(f"The decoder {name} cannot be loaded: {error}") from error
    if not callable(found):
        raise WrongUsageError(f"The decoder {name} is not a function")
    return cast("BytesDecoder", found)


def _imported(name: str) -> object:
    module, _, path = name.partition(":")
    found: object = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _entry_point(name: str) -> object:
    for each in entry_points(group=ENTRY_POINTS, name=name):
        loaded: object = each.load()
        return loaded
    raise ImportError(
        f"it is neither package.module:function nor an entry point of the group {ENTRY_POINTS}"
    )


def _number(code: str) -> BytesDecoder:
    """Return a decoder of a number at the beginning of the bytes."""
    form = Struct(code)

    def decode(data: bytes) -> int:
        try:
            return int(form.unpack_from(data)[0])
        except StructError:
            raise ValueError(f"{len(data)} bytes are too few for {form.size}") from None

    return decode


_KAFKAS: Final[Mapping[str, BytesDecoder]] = MappingProxyType(
    {
        STRING_DECODER: java_text,
        "org.apache.kafka.tools.api.IntegerDecoder": _number(">i"),
        "org.apache.kafka.tools.api.LongDecoder": _number(">q"),
    }
)


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
            # Kafka names the state from 4.4.0 on.
            named = cast("dict[str, Json]", fields)
            state = named[_STATE]
            assert isinstance(state, int)
            fields = {**named, _STATE: TRANSACTION_STATES.get(state, str(state))}
        return json_text({"version": str(value.version), "data": fields})


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
