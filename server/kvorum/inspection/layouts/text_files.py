"""The small files that are text: checkpoints, quorum-state, partition.metadata, meta.properties.

Each is declared line by line, as Kafka writes it. Its readers take more than that, such as several
blanks for one, and so do those of nodes here: a layout says where a file differs, not whether it is
sound.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kvorum.inspection.layouts.field import Field
from kvorum.storage.errors import shortened
from kvorum.wire.checksums import crc32c

_COUNT: Final = rb"0|[1-9][0-9]{0,9}"
_NUMBER: Final = rb"0|-?[1-9][0-9]{0,18}"
_UUID: Final = rb"[A-Za-z0-9_-]{21}[AQgw]"
"""22 characters for 128 bits: the last one stands for two of them."""

_INT32: Final = rb"0|-?[1-9][0-9]{0,9}"
_CHECKSUM: Final = rb'(,"kvorumChecksum":"(?P<kvorumChecksum>[0-9a-f]{8})")?'
"""The key of quorum-state that kvorum adds: Kafka's files lack it."""

_COVERED_BYTES: Final = 22
"""The bytes that the flushed offset's checksum covers: version, space and 20 digits."""

_PROPERTIES: Final = frozenset({"version", "cluster.id", "broker.id", "node.id", "directory.id"})
"""The keys of meta.properties."""
_PROPERTY: Final = re.compile(
    rb"(#[^\r\n]*|(?P<key>[a-z.]+)[ \t]*=[ \t]*(?P<value>[^\r\n]*))(\r?\n|\Z)"
)


class TextProblem(NamedTuple):
    """The point at which a text leaves its form: the first byte of that line or part, and why."""

    position: int
    text: str


class TextReading(NamedTuple):
    """The fields of a text up to where it leaves its form."""

    fields: tuple[Field, ...]
    problem: TextProblem | None


TextLayout = Callable[[bytes], TextReading]
"""Reads a whole file."""


class _Line(NamedTuple):
    """One line: its name, and its form with a group for each field."""

    name: str
    form: re.Pattern[bytes]


def _line(name: str, form: bytes) -> _Line:
    return _Line(name, re.compile(form))


_VERSION: Final = _line("version", rb"(?P<version>0)\r?\n")
_ENTRIES: Final = _line("count", rb"(?P<count>" + _COUNT + rb")\r?\n")
_EPOCH: Final = _line(
    "entry", rb"(?P<epoch>" + _COUNT + rb") (?P<start_offset>" + _NUMBER + rb")\r?\n"
)
_OFFSET: Final = _line(
    "entry",
    rb"(?P<topic>[a-zA-Z0-9._-]{1,249}) (?P<partition>"
    + _COUNT
    + rb") (?P<offset>"
    + _NUMBER
    + rb")\r?\n",
)


def _fields_of(found: re.Match[bytes], prefix: str = "") -> Iterator[Field]:
    for name, value in found.groupdict().items():
        if value is not None:
            yield Field(prefix + name, found.start(name), found.end(name), value.decode())


def _checkpoint(entry: _Line) -> TextLayout:
    """Return the layout of a checkpoint: version, number of entries, a line for each.

    A file that was only created has no bytes.
    """

    def read(data: bytes) -> TextReading:
        fields: list[Field] = []
        if not data:
            return TextReading((), None)
        position, count, number = 0, 0, -2
        while number < count:
            line = (_VERSION, _ENTRIES)[number + 2] if number < 0 else entry
            found = line.form.match(data, position)
            if found is None:
                return TextReading(
                    tuple(fields), TextProblem(position, f"no {line.name} in its form")
                )
            fields += _fields_of(found, f"entries.{number}." if number >= 0 else "")
            if line is _ENTRIES:
                count = int(found["count"])
            position, number = found.end(), number + 1
        return TextReading(tuple(fields), _rest(data, position, f"after {count} entries"))

    return read


def _rest(data: bytes, position: int, place: str) -> TextProblem | None:
    if position == len(data):
        return None
    return TextProblem(position, f"{len(data) - position} bytes more {place}")


_EPOCHS: Final = _checkpoint(_EPOCH)


def leader_epoch_checkpoint(data: bytes) -> TextReading:
    """Read leader-epoch-checkpoint: epochs and start offsets, both of which grow."""
    reading = _EPOCHS(data)
    numbers = [field for field in reading.fields if field.path.startswith("entries.")]
    # Epoch and start offset of the entry before are two fields back.
    for before, field in zip(numbers, numbers[2:], strict=False):
        if int(str(field.value)) <= int(str(before.value)):
            problem = TextProblem(field.start, f"{field.value} follows {before.value}")
            return TextReading(reading.fields, reading.problem or problem)
    return reading


OFFSET_CHECKPOINT: Final = _checkpoint(_OFFSET)


def _one_form(*forms: bytes) -> TextLayout:
    """Return the layout of a file that has one of these forms as a whole."""
    patterns = [re.compile(form) for form in forms]

    def read(data: bytes) -> TextReading:
        for pattern in patterns:
            found = pattern.fullmatch(data)
            if found is not None:
                return TextReading(tuple(_fields_of(found)), None)
        return TextReading((), TextProblem(0, "not in its form"))

    return read


PARTITION_METADATA: Final = _one_form(
    rb"version: (?P<version>0)\r?\ntopic_id: (?P<topic_id>" + _UUID + rb")(\r?\n)?"
)

_QUORUM_STATE: Final = _one_form(
    rb'\{"clusterId":"(?P<clusterId>[^"]*)","leaderId":(?P<leaderId>'
    + _INT32
    + rb'),"leaderEpoch":(?P<leaderEpoch>'
    + _INT32
    + rb'),"votedId":(?P<votedId>'
    + _INT32
    + rb'),"appliedOffset":(?P<appliedOffset>'
    + _NUMBER
    + rb'),"currentVoters":(?P<currentVoters>null|\[(\{"voterId":[0-9]+\},?)*\]),'
    rb'"data_version":(?P<data_version>0)' + _CHECKSUM + rb"\}\r?\n?",
    rb'\{"leaderId":(?P<leaderId>'
    + _INT32
    + rb'),"leaderEpoch":(?P<leaderEpoch>'
    + _INT32
    + rb'),"votedId":(?P<votedId>'
    + _INT32
    + rb'),"votedDirectoryId":"(?P<votedDirectoryId>'
    + _UUID
    + rb')","data_version":(?P<data_version>1)'
    + _CHECKSUM
    + rb"\}\r?\n?",
)


def quorum_state(data: bytes) -> TextReading:
    """Read quorum-state: one line of JSON, in version 0 or 1; kvorum adds its checksum."""
    reading = _QUORUM_STATE(data)
    checksum = next((field for field in reading.fields if field.path == "kvorumChecksum"), None)
    if checksum is None:
        return reading
    rest = data[: checksum.start - len(b',"kvorumChecksum":"')] + b"}"
    problem = _problem_of_checksum(rest, checksum)
    return reading if problem is None else reading._replace(problem=problem)


def _problem_of_checksum(covered: bytes, stored: Field) -> TextProblem | None:
    computed = f"{crc32c(covered):08x}"
    if computed == stored.value:
        return None
    return TextProblem(stored.start, f"the checksum is {computed}, stored is {stored.value}")


_FLUSHED_OFFSET: Final = _one_form(
    rb"(?P<version>0) (?P<offset>[0-9]{20}) (?P<checksum>[0-9a-f]{8})\n"
)


def flushed_offset(data: bytes) -> TextReading:
    """Read kvorum-flushed-offset: version, offset, checksum of both."""
    reading = _FLUSHED_OFFSET(data)
    if reading.problem is not None:
        return reading
    return reading._replace(problem=_problem_of_checksum(data[:_COVERED_BYTES], reading.fields[-1]))


CLEAN_SHUTDOWN: Final = _one_form(
    rb"", rb'\{"version":(?P<version>0),"brokerEpoch":(?P<brokerEpoch>' + _NUMBER + rb")\}\r?\n?"
)
"""`.kafka_cleanshutdown`; older releases leave it empty."""


def meta_properties(data: bytes) -> TextReading:
    """Read meta.properties: a line for each property, each of them known and there once."""
    fields: dict[str, Field] = {}
    position = 0
    while position < len(data):
        found = _PROPERTY.match(data, position)
        if found is None:
            return _read_until(fields, position, "no property in its form")
        if found["key"] is not None:
            key = found["key"].decode()
            if key not in _PROPERTIES:
                return _read_until(fields, position, f"there is no property {shortened(key)}")
            if key in fields:
                return _read_until(fields, position, f"{key} is there twice")
            value = found["value"].decode("iso-8859-1")
            fields[key] = Field(key, found.start("value"), found.end("value"), value)
        position = found.end()
    return TextReading(tuple(fields.values()), None)


def _read_until(fields: dict[str, Field], position: int, problem: str) -> TextReading:
    return TextReading(tuple(fields.values()), TextProblem(position, problem))
