"""The schemas of Kafka's message classes beside ours, and Kafka's codec as the judge of bytes."""

import json
import re
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, TypeAlias, cast

from tests.support.kafka.java import Java

from kvorum.codegen.model import MessageSpec, StructSpec
from kvorum.codegen.naming import json_name
from kvorum.codegen.plan import FieldLayout, Layout, layouts
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

CONVERTER: Final = re.compile(r"(org/apache/kafka/[\w/]+)JsonConverter\.class")
_HEAD = struct.Struct(">ihi")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Judged:
    """A message as Kafka writes it: its bytes and its JSON, or why Kafka refuses it."""

    message: str
    version: int
    data: bytes
    json: bytes
    refusal: str = ""


def message_name(class_name: str) -> str:
    """Return the message that a class carries: only those of the wire have a suffix."""
    return re.sub(r"(Request|Response|Header)Data\Z", r"\1", class_name.rpartition(".")[2])


@dataclass(frozen=True)
class CodecOracle:
    """Runs the Java program; its classes are all that Kafka's jars hold."""

    java: Java

    @cached_property
    def class_names(self) -> list[str]:
        """Every generated message class that has a JSON converter."""
        found: set[str] = set()
        for jar in self.java.jars.glob("kafka-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                matches = (CONVERTER.fullmatch(name) for name in archive.namelist())
                found |= {match[1].replace("/", ".") for match in matches if match}
        return sorted(found)

    @cached_property
    def message_names(self) -> list[str]:
        """The message of each class."""
        return [message_name(name) for name in self.class_names]

    def random(self, *, seed: int, count: int) -> Generator[Judged, None, None]:
        """Yield `count` random messages of every class and version; close what is not read."""
        yield from self._run("random", str(seed), str(count), questions=())

    def echo(self, questions: Iterable[tuple[str, int, bytes]]) -> Generator[Judged, None, None]:
        """Yield what Kafka makes of messages of ours: (name, version, bytes)."""
        yield from self._run("echo", questions=questions)

    def _run(
        self, mode: str, *arguments: str, questions: Iterable[tuple[str, int, bytes]]
    ) -> Iterator[Judged]:
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as asked:
            names = Path(name) / "classes"
            names.write_text("\n".join(self.class_names) + "\n")
            self._write_questions(asked, questions)
            command = self.java.program("CodecOracle", mode, str(names), *arguments, heap_mb=512)
            with subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                yield from self._answers(process.stdout)
                assert process.wait() == 0

    def _write_questions(
        self, file: IO[bytes], questions: Iterable[tuple[str, int, bytes]]
    ) -> None:
        index_of = {name: index for index, name in enumerate(self.message_names)}
        for name, version, data in questions:
            file.write(_HEAD.pack(index_of[name], version, len(data)) + data)
        file.seek(0)

    def _answers(self, stream: IO[bytes]) -> Iterator[Judged]:
        while head := stream.read(_HEAD.size):
            index: int
            index, version, length = _HEAD.unpack(head)
            data = stream.read(max(length, 0))
            json = stream.read(_LENGTH.unpack(stream.read(_LENGTH.size))[0])
            refusal = json.decode() if length < 0 else ""
            yield Judged(self.message_names[index], version, data, json, refusal)


# A line of JSON: its shape is checked by comparing it as a whole.
Facts: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KafkasFacts:
    """Messages by name, APIs by key, and the error codes with their names and messages."""

    messages: dict[str, Facts]
    apis: dict[int, Facts]
    errors: dict[int, Facts]


def facts_of_kafka(java: Java) -> KafkasFacts:
    """Ask the classes in the jars."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "classes"
        names.write_text("\n".join(CodecOracle(java).class_names) + "\n")
        rows: list[Facts] = [json.loads(line) for line in java.answers("SchemaFacts", str(names))]
    return KafkasFacts(
        messages={message_name(row["class"]): row for row in rows if "class" in row},
        apis={row["api"]: row for row in rows if "api" in row},
        errors={row["error"]: row for row in rows if "error" in row},
    )


def plain(name: str) -> str:
    """Return a name as both spellings of it come to, with underscores and with capitals."""
    return name.replace("_", "").lower()


def plain_schema(schema: list[Any]) -> list[Any]:
    """Return a schema of Kafka's with plain names."""
    return [_plain_row(row) for row in schema]


def _plain_row(row: Any) -> Any:
    if isinstance(row, dict):
        return {tag: _plain_row(inner) for tag, inner in cast("Facts", row).items()}
    name, *kinds = row
    return [plain(name), *(kind if isinstance(kind, str) else plain_schema(kind) for kind in kinds)]


# -- ours --------------------------------------------------------------------------------------


def our_schemas(spec: MessageSpec) -> dict[str, list[Any]]:
    """Return the schema of every version in the form of `plain_schema`."""
    spans = layouts(spec, spec.root)
    return {
        str(version): _schema(
            next(span for span in spans if span.lowest <= version <= span.highest)
        )
        for version in spec.versions.each()
    }


def _schema(layout: Layout) -> list[Any]:
    rows: list[Any] = [_row(layout, each) for each in layout.plain]
    if layout.is_flexible:
        rows.append({str(each.field.tag): _row(layout, each) for each in layout.tagged})
    return rows


def _row(layout: Layout, each: FieldLayout) -> list[Any]:
    kind = each.field.type
    compact = "COMPACT_" if each.is_compact else ""
    nullable = "NULLABLE_" if each.is_nullable else ""
    row: list[Any] = [plain(each.field.name)]
    if kind.is_array:
        row.append(f"{compact}{nullable}ARRAY")
        nullable = ""
    if kind.is_struct:
        return [*row, f"{nullable}STRUCT", _schema(layout.of_struct(kind.name))]
    if kind.name in {"string", "bytes", "records"}:
        return [*row, f"{compact}{nullable}{kind.name.upper()}"]
    return [*row, {"bool": "BOOLEAN"}.get(kind.name, kind.name.upper())]


def our_structs(spec: MessageSpec) -> dict[str, Facts]:
    """Return the defaults of every struct's fields, and which of them are lists."""
    return {
        "" if struct is spec.root else struct.name: _defaults(spec, struct)
        for struct in spec.structs
    }


def _defaults(spec: MessageSpec, struct: StructSpec) -> Facts:
    found: Facts = {}
    for field in struct.fields:
        kind = field.type
        shape = ""
        if kind.is_array:
            is_keyed = kind.is_struct and any(
                one.is_map_key for one in spec.struct(kind.name).fields
            )
            shape = "keyed list" if is_keyed else "list"
        default: Any = field.default
        if field.has_null_default or kind.name == "records":
            default = None
        elif kind.is_array:
            default = 0
        elif kind.is_struct:
            default = "struct"
        elif kind.name == "uuid":
            default = uuid_to_text(ZERO_UUID)
        found[json_name(field.name)] = [default, shape]
    return found
