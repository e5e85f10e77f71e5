"""Decoders of keys and values by name: Python functions, and Kafka's own for text and numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception's name
from types import MappingProxyType
from typing import Final, cast

from kvorum.cli.dump.arguments import WrongUsageError
from kvorum.cli.dump.errors import DecoderFailedError
from kvorum.cli.dump.payloads import Payload, java_text
from kvorum.wire.records import Record

ENTRY_POINTS: Final = "kvorum.decoders"
"""The group of entry points whose names are taken for decoders."""

STRING_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"

# A function from a key or a value, which is not null, to an object whose text is printed.
BytesDecoder = Callable[[bytes], object]


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
