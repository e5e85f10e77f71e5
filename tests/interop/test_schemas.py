"""Our schemas say of every message what Kafka's jars say: the files in them and the classes."""

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from tests.interop.kafka_schemas import (
    Facts,
    KafkasFacts,
    facts_of_kafka,
    our_schemas,
    our_structs,
    plain_schema,
)
from tests.support.kafka.java import Java
from tests.support.source_tree import ROOT

from kvorum.codegen.model import FieldType, MessageSpec
from kvorum.codegen.parse import read_schemas
from kvorum.wire.apis import API_SPECS, METADATA_RECORDS, message_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError, UnsupportedVersionError
from kvorum.wire.headers import request_header_version, response_header_version
from kvorum.wire.json_form import FieldFacts, element_class, fields_of
from kvorum.wire.primitives import Message, Struct

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
