"""Our schemas and codec say of every message what Kafka's jars say: files, classes, bytes."""

import json
import re
import struct
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import IO, Any, Final, TypeAlias, cast

import pytest
from tests.support.kafka.java import Java
from tests.support.random_messages import random_message
from tests.support.source_tree import ROOT

from kvorum.codegen.model import FieldType, MessageSpec, StructSpec, json_name
from kvorum.codegen.parse import read_schemas
from kvorum.codegen.plan import FieldLayout, Layout, layouts
from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import API_SPECS, METADATA_RECORDS, message_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError, UnsupportedVersionError
from kvorum.wire.headers import request_header_version, response_header_version
from kvorum.wire.json_form import FieldFacts, element_class, fields_of, to_json
from kvorum.wire.primitives import Message, Struct
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


pytestmark = pytest.mark.sample


SCHEMAS = ROOT / "json-schemas"
PROSE = frozenset({"about", "license", "comment"})
SCHEMA_PLACES = re.compile(r"(common/)?(message|metadata)/\w+\.json")
COMMENT_OUTSIDE_STRINGS = re.compile(r'("(?:[^"\\]|\\.)*")|//.*|/\*[\s\S]*?\*/')
OTHER_VALUES = {
    "string": "x", "uuid": bytes(15) + b"\x07", "bytes": b"\x01", "records": b"\x01",
    "float64": 1.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def kafkas(java: Java) -> KafkasFacts:
    return facts_of_kafka(java)


@pytest.fixture(scope="module")
def specs() -> dict[str, MessageSpec]:
    return {spec.name: spec for spec in read_schemas(SCHEMAS)}


# -- the files in the jars ---------------------------------------------------------------------


def files_in_jars(jars: Path) -> dict[str, Facts]:
    found: dict[str, Facts] = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if SCHEMA_PLACES.fullmatch(name):
                    text = archive.read(name).decode("utf-8")
                    bare = COMMENT_OUTSIDE_STRINGS.sub(lambda match: match[1] or "", text)
                    source = json.loads(bare)
                    found[source["name"]] = without_prose(source)
    return found


def without_prose(source: Any) -> Any:
    if isinstance(source, dict):
        entries = cast("Facts", source).items()
        return {key: without_prose(value) for key, value in entries if key not in PROSE}
    if isinstance(source, list):
        return [without_prose(element) for element in cast("list[object]", source)]
    return source


def schema_differences(ours: dict[str, Facts], theirs: dict[str, Facts]) -> list[str]:
    found = sorted(ours.keys() ^ theirs.keys())
    for name in sorted(ours.keys() & theirs.keys()):
        own = {key: value for key, value in ours[name].items() if key != "log"}
        found += [] if own == theirs[name] else [name]
    return found


def our_files() -> dict[str, Facts]:
    files = [file for file in SCHEMAS.glob("*.json") if file.name != "ErrorCodes.json"]
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}


def test_every_schema_is_the_file_in_the_jars_but_for_prose(java: Java) -> None:
    theirs = files_in_jars(java.jars)
    assert len(theirs) >= 270
    assert schema_differences(our_files(), theirs) == []


@pytest.mark.parametrize(
    ("message", "key", "value"),
    [
        ("VoteRequest", "validVersions", "0-3"),
        ("VoteRequest", "flexibleVersions", "1+"),
        ("VoteRequest", "listeners", ["broker"]),
        ("TopicRecord", "apiKey", 22),
    ],
)
def test_a_changed_fact_is_noticed(java: Java, message: str, key: str, value: Any) -> None:
    ours = our_files()
    assert ours[message][key] != value
    ours[message][key] = value
    assert schema_differences(ours, files_in_jars(java.jars)) == [message]


@pytest.mark.parametrize(
    ("key", "value"), [("type", "int16"), ("ignorable", True), ("default", "7"), ("versions", "1+")]
)
def test_a_changed_field_is_noticed(java: Java, key: str, value: Any) -> None:
    ours = our_files()
    ours["TopicRecord"]["fields"][0][key] = value
    assert schema_differences(ours, files_in_jars(java.jars)) == ["TopicRecord"]


def test_metadata_records_are_those_of_the_metadata_log() -> None:
    assert set(METADATA_RECORDS.values()) == {
        name for name, schema in our_files().items() if schema.get("log") == "cluster-metadata"
    }
    assert len(METADATA_RECORDS) == 27


# -- the compiled classes ----------------------------------------------------------------------


def compiled_differences(spec: MessageSpec, theirs: Facts) -> list[str]:
    """Return which versions' schemas and which structs' defaults are not Kafka's."""
    schemas = {version: plain_schema(rows) for version, rows in theirs["schemas"].items()}
    ours = our_schemas(spec)
    found = [
        f"{spec.name} version {version}"
        for version in sorted(schemas.keys() | ours.keys())
        if schemas.get(version) != ours.get(version)
    ]
    structs, own = theirs["structs"], our_structs(spec)
    return found + [
        f"{spec.name} struct {name}"
        for name in sorted(structs.keys() | own.keys())
        if structs.get(name) != own.get(name)
    ]


def test_every_version_and_default_is_that_of_the_compiled_class(
    kafkas: KafkasFacts, specs: dict[str, MessageSpec]
) -> None:
    messages = kafkas.messages
    ours = {name: spec for name, spec in specs.items() if spec.versions}
    assert ours.keys() == messages.keys()
    differences = [compiled_differences(spec, messages[name]) for name, spec in ours.items()]
    assert [each for each in differences if each] == []


def test_a_schema_that_differs_from_the_class_is_noticed(
    kafkas: KafkasFacts, specs: dict[str, MessageSpec]
) -> None:
    messages = kafkas.messages
    spec = specs["TopicRecord"]
    first = spec.root.fields[0]
    for changed in (
        replace(first, type=FieldType("bytes")),
        replace(first, nullable=first.versions),
        replace(first, name="Nom"),
        replace(first, default="none"),
    ):
        root = replace(spec.root, fields=(changed, *spec.root.fields[1:]))
        wrong = replace(spec, root=root, structs=(root, *spec.structs[1:]))
        assert compiled_differences(wrong, messages["TopicRecord"]) != []


def test_apis_listeners_and_header_versions_are_kafkas(kafkas: KafkasFacts) -> None:
    with_versions = {key: facts for key, facts in kafkas.apis.items() if facts["headers"]}
    assert with_versions.keys() == API_SPECS.keys()
    for key, facts in with_versions.items():
        spec = API_SPECS[key]
        versions = range(spec.min_version, spec.max_version + 1)
        assert (versions[0], versions[-1]) == (facts["lowest"], facts["highest"]), spec
        assert spec.is_latest_version_unstable == facts["unstable"], spec
        assert {name.upper() for name in spec.listeners} == set(facts["listeners"]), spec
        headers = [
            [request_header_version(key, version), response_header_version(key, version)]
            for version in versions
        ]
        assert headers == facts["headers"], spec


# -- what a version refuses to write -----------------------------------------------------------


@cache
def _facts(module: str, name: str) -> list[tuple[FieldFacts, type[Struct] | None]]:
    kind = getattr(__import__(module, fromlist=[name]), name)
    return [(field, element_class(kind, field.kind)) for field in fields_of(kind)]


def paths(kind: type[Struct]) -> Iterator[list[tuple[FieldFacts, type[Struct] | None]]]:
    for field, inner in _facts(kind.__module__, kind.__name__):
        yield [(field, inner)]
        if inner is not None:
            yield from ([(field, inner), *rest] for rest in paths(inner))


def other_value(owner: Struct, field: FieldFacts, inner: type[Struct] | None) -> Any:
    """Return a value that is not the field's default, for a list one of its elements."""
    if inner is not None:
        return inner()
    name = field.kind.removeprefix("[]")
    if name == "bool":
        return not getattr(owner, field.attribute)
    if name in OTHER_VALUES:
        return OTHER_VALUES[name]
    return 2 if getattr(owner, field.attribute) == 1 else 1


def refusal(
    kind: type[Message], path: list[tuple[FieldFacts, type[Struct] | None]], version: int
) -> str | None:
    message = kind()
    owner: Struct = message
    for field, inner in path:
        value = other_value(owner, field, inner)
        setattr(owner, field.attribute, [value] if field.kind.startswith("[]") else value)
        if isinstance(value, Struct):
            owner = value
    try:
        message.encode(version)
    except UnsupportedVersionError as error:
        return str(error)
    except EncodeError as error:
        return "null" if "null" in str(error) else str(error)
    return None


def our_refusals(kind: type[Message]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path in paths(kind):
        by_version = {
            str(version): said
            for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1)
            if (said := refusal(kind, path, version)) is not None
        }
        if by_version:
            found[".".join(field.json_name for field, _ in path)] = by_version
    return found


def test_what_a_version_cannot_carry_is_refused_as_kafka_does(kafkas: KafkasFacts) -> None:
    messages = kafkas.messages
    refused = 0
    for name, facts in messages.items():
        ours = our_refusals(message_class(name))
        assert ours == facts["refusals"], name
        refused += len(ours)
    assert refused >= 100


# -- error codes -------------------------------------------------------------------------------


def test_error_codes_are_kafkas(kafkas: KafkasFacts) -> None:
    theirs = {code: (facts["name"], facts["message"]) for code, facts in kafkas.errors.items()}
    assert {int(code): (code.name, code.default_message) for code in ErrorCode} == theirs
    assert len(theirs) >= 130


KAFKAS_MESSAGES_MIN = 200_000
KAFKAS_MESSAGES_PER_PAIR = 280
OUR_MESSAGES_PER_PAIR = 40
JSON_EVERY = 10
SEED = 431
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
RECORDS_KEYS = frozenset({"records", "unalignedRecords"})


@pytest.fixture(scope="module")
def oracle(java: Java) -> CodecOracle:
    return CodecOracle(java)


def every_pair() -> Iterator[tuple[type[Message], int]]:
    for name in sorted(MODULES):
        kind = message_class(name)
        for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1):
            yield kind, version


def kafkas_json(message: Message, version: int) -> Json:
    """Give our JSON as Kafka's converters do, which print every blob of records as empty."""
    return without_records(to_json(message, version))


def without_records(value: Json) -> Json:
    if isinstance(value, list):
        return [without_records(element) for element in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "" if key in RECORDS_KEYS and inner is not None else without_records(inner)
        for key, inner in value.items()
    }


def test_we_read_and_write_what_kafka_writes(oracle: CodecOracle) -> None:
    counts: Counter[tuple[str, int]] = Counter()
    with closing(oracle.random(seed=SEED, count=KAFKAS_MESSAGES_PER_PAIR)) as answers:
        for number, judged in enumerate(answers):
            message = message_class(judged.message).decode(judged.data, judged.version)
            name = f"message {number}: {judged.message} version {judged.version}"
            assert message.encode(judged.version) == judged.data, name
            if number % JSON_EVERY == 0:
                assert kafkas_json(message, judged.version) == json.loads(judged.json), name
            counts[judged.message, judged.version] += 1
    assert set(counts) == {(kind.NAME, version) for kind, version in every_pair()}
    assert counts.total() >= KAFKAS_MESSAGES_MIN
    assert min(counts.values()) == KAFKAS_MESSAGES_PER_PAIR


def test_kafka_reads_and_writes_what_we_write(oracle: CodecOracle) -> None:
    random = Random(SEED)
    ours = [
        (random_message(kind, version, random), version)
        for kind, version in every_pair()
        for _ in range(OUR_MESSAGES_PER_PAIR)
    ]
    questions = [(message.NAME, version, message.encode(version)) for message, version in ours]
    with closing(oracle.echo(questions)) as answers:
        for (message, version), question, judged in zip(ours, questions, answers, strict=True):
            name = f"{message.NAME} version {version}: {message!r}"
            assert judged.refusal == "", name
            assert (judged.message, judged.version, judged.data) == question, name
            assert json.loads(judged.json) == kafkas_json(message, version), name


def test_a_wrong_byte_is_noticed(oracle: CodecOracle) -> None:
    """The judge can say no: to bytes that it cannot read, and to those that mean something else."""
    data = message_class("HeartbeatRequest")().encode(4)
    refused, changed = oracle.echo(
        [("HeartbeatRequest", 4, data[:-1]), ("HeartbeatRequest", 3, data[:2] + b"\x01" + data[3:])]
    )
    assert refused.refusal
    assert changed.refusal or changed.data != data
