"""The grammar of message schemas: what is read, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.codegen.schemas import field, schema, spec_of

from kvorum.codegen.errors import CodegenError
from kvorum.codegen.model import FieldType
from kvorum.codegen.naming import class_name, json_name, module_name, snake_case
from kvorum.codegen.parse import parse_default, parse_type, read_schema
from kvorum.codegen.plan import layouts
from kvorum.codegen.versions import ALL, NONE, VERSION_MAX, Versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", Versions(3, 3)),
        ("1-4", Versions(1, 4)),
        ("2+", Versions(2, VERSION_MAX)),
        ("none", NONE),
        ("0+", ALL),
    ],
)
def test_versions(text: str, expected: Versions) -> None:
    assert Versions.parse(text) == expected


@pytest.mark.parametrize("text", ["", "x", "-1", "1-", "1+2", "1 - 2", "+"])
def test_anything_that_does_not_list_versions(text: str) -> None:
    with pytest.raises(CodegenError, match="not a range of versions"):
        Versions.parse(text)


def test_versions_meet() -> None:
    assert Versions(1, 5) & Versions(3, 9) == Versions(3, 5)
    assert Versions(1, 2) & Versions(3, 9) == NONE
    assert not NONE
    assert 4 in Versions(3, 5)
    assert 6 not in Versions(3, 5)


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("int32", None, (0, False)),
        ("int32", "-1", (-1, False)),
        ("int32", 7, (7, False)),
        ("int32", "0x7fffffff", (2**31 - 1, False)),
        ("int64", "9223372036854775807", (2**63 - 1, False)),
        ("bool", "true", (True, False)),
        ("bool", True, (True, False)),
        ("bool", None, (False, False)),
        ("string", None, ("", False)),
        ("string", "null", (None, True)),
        ("string", "x", ("x", False)),
        ("float64", "1.5", (1.5, False)),
        ("[]int32", "null", (None, True)),
        ("Thing", "null", (None, True)),
    ],
)
def test_defaults(kind: str, source: Any, expected: tuple[object, bool]) -> None:
    assert parse_default(parse_type(kind), source) == expected


@pytest.mark.parametrize(
    ("kind", "source", "problem"),
    [
        ("int8", "128", "default 128 is no int8"),
        ("uint16", "-1", "default -1 is no uint16"),
        ("int32", "x", "invalid literal"),
        ("bytes", "x", "only null may be the default"),
        ("[]int32", "1", "only null may be the default"),
        ("Thing", "{}", "only null may be the default"),
    ],
)
def test_defaults_that_do_not_fit(kind: str, source: Any, problem: str) -> None:
    with pytest.raises((CodegenError, ValueError), match=problem):
        parse_default(parse_type(kind), source)


def test_types() -> None:
    assert parse_type("[]Topic") == FieldType("Topic", is_array=True)
    assert parse_type("[]Topic").is_struct
    assert not parse_type("uuid").is_struct
    assert parse_type("uuid").is_fixed
    assert not parse_type("[]uuid").is_fixed
    with pytest.raises(CodegenError, match="arrays of arrays"):
        parse_type("[][]int32")


def test_a_tag_may_be_spelt_as_text_as_older_releases_do() -> None:
    for tag in (0, "0"):
        assert spec_of(field("int32", "2+", tag=tag, taggedVersions="2+")).root.fields[0].tag == 0


def test_a_tagged_field_takes_its_versions_from_its_tagged_ones() -> None:
    tagged = {"name": "It", "type": "int32", "tag": 0, "taggedVersions": "2+"}
    assert spec_of(tagged).root.fields[0].versions == Versions(2, 3)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([field("int32", tag=0)], "a tag and taggedVersions go together"),
        ([field("int32", taggedVersions="2+")], "a tag and taggedVersions go together"),
        ([field("int32", "2+", tag=1, taggedVersions="2+")], "tags of Probe are not contiguous"),
        ([field("int32", "two")], "not a range of versions"),
    ],
)
def test_fields_that_break_the_grammar(fields: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(CodegenError, match=problem):
        spec_of(*fields)


def test_structs_are_found_at_every_depth_and_shared_ones_once() -> None:
    inner = field("[]Inner", name="Inners", fields=[field("int8")])
    spec = spec_of(
        field("[]Outer", name="Outers", fields=[inner]),
        field("[]Shared", name="One"),
        field("Shared", name="Other", versions="1+"),
        commonStructs=[{"name": "Shared", "versions": "0+", "fields": [field("int64")]}],
    )
    assert sorted(struct.name for struct in spec.structs) == ["Inner", "Outer", "Probe", "Shared"]
    assert spec.root.name == "Probe"


def test_versions_with_the_same_layout_share_their_code() -> None:
    spec = spec_of(field("int32"), field("int32", "1+", name="Later"))
    spans = [(layout.lowest, layout.highest) for layout in layouts(spec, spec.root)]
    assert spans == [(0, 0), (1, 1), (2, 3)]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "Probe.json"
    for text in ("{", "[]", json.dumps({"name": "Probe"}), json.dumps(schema(field("[][]int8")))):
        file.write_text(text)
        with pytest.raises(CodegenError, match=r"^Probe\.json: "):
            read_schema(file)


@pytest.mark.parametrize(
    ("name", "snake", "lowered"),
    [
        ("LeaderEpoch", "leader_epoch", "leaderEpoch"),
        ("KRaftVersion", "kraft_version", "kRaftVersion"),
        ("ISRNodes", "isr_nodes", "iSRNodes"),
        ("topicId", "topic_id", "topicId"),
        ("Class", "class_", "class"),
    ],
)
def test_names(name: str, snake: str, lowered: str) -> None:
    assert snake_case(name).replace("k_raft", "kraft") == snake
    assert json_name(name) == lowered


def test_modules_and_classes_are_named_after_messages() -> None:
    assert module_name(spec_of(name="FetchRequest", type="request")) == "fetch"
    assert module_name(spec_of(name="TopicRecord", type="metadata")) == "topic_record"
    assert class_name("FetchRequest", "FetchTopic") == "FetchRequestFetchTopic"
    assert class_name("VoteRequest", "VoteRequestTopic") == "VoteRequestTopic"
