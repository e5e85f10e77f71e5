"""From schemas to code: the grammar, each kind of field byte by byte, and the committed code."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.source_tree import ROOT

from kvorum.codegen.__main__ import generate
from kvorum.codegen.emit_module import emit_module
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.generate import differences, generated_files, write
from kvorum.codegen.model import (
    ALL,
    NONE,
    VERSION_MAX,
    FieldType,
    MessageSpec,
    Versions,
    class_name,
    json_name,
    module_name,
    snake_case,
)
from kvorum.codegen.parse import parse_default, parse_message, parse_type, read_schema
from kvorum.codegen.plan import layouts
from kvorum.wire.errors import DecodeError, EncodeError, UnsupportedVersionError

# Type, value, bytes in version 0 (old), bytes in version 2 (compact), without the tagged section.
KINDS: list[tuple[str, Any, str, str]] = [
    ("bool", True, "01", "01"),
    ("int8", -2, "fe", "fe"),
    ("int16", -2, "fffe", "fffe"),
    ("uint16", 65_535, "ffff", "ffff"),
    ("int32", -2, "fffffffe", "fffffffe"),
    ("uint32", 4_294_967_295, "ffffffff", "ffffffff"),
    ("int64", -2, "fffffffffffffffe", "fffffffffffffffe"),
    ("float64", 1.5, "3ff8000000000000", "3ff8000000000000"),
    ("uuid", bytes(range(16)), bytes(range(16)).hex(), bytes(range(16)).hex()),
    ("string", "h\u00e9", "000368c3a9", "0468c3a9"),
    ("string", "x" * 127, "007f" + "78" * 127, "8001" + "78" * 127),
    ("bytes", b"ab", "000000026162", "036162"),
    ("records", b"ab", "000000026162", "036162"),
    ("[]bool", [True, False], "000000020100", "030100"),
    ("[]int8", [1, -1], "0000000201ff", "0301ff"),
    ("[]int32", [1, 2], "000000020000000100000002", "030000000100000002"),
    ("[]int32", [7] * 200, "000000c8" + "00000007" * 200, "c901" + "00000007" * 200),
    ("[]int64", [], "00000000", "01"),
    ("[]uuid", [bytes(16)], "00000001" + "00" * 16, "02" + "00" * 16),
    ("[]string", ["a", ""], "000000020001610000", "03026101"),
    ("[]bytes", [b"a"], "000000010000000161", "020261"),
]
SCHEMAS = ROOT / "json-schemas"
WIRE = ROOT / "wire" / "kvorum" / "wire"


def schema(*fields: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "name": "Probe",
        "type": "data",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": list(fields),
        **changes,
    }


def field(kind: str, versions: str = "0+", name: str = "It", **facts: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **facts}


INNER = [field("int16", name="A"), field("string", "1+", name="B")]


def spec_of(*fields: dict[str, Any], **changes: Any) -> MessageSpec:
    return parse_message(schema(*fields, **changes))


def class_of(folder: Path, *fields: dict[str, Any], **changes: Any) -> Any:
    """Generate the module of one schema, import it and return the message's class.

    No checker can know its fields, as it is made while the test runs.
    """
    spec = spec_of(*fields, **changes)
    file = folder / "probe_module.py"
    file.write_text(emit_module([spec]), encoding="utf-8")
    found = importlib.util.spec_from_file_location("probe_module", file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["probe_module"] = module
    found.loader.exec_module(module)
    return module.Probe


def write_folder(folder: Path, *schemas: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for each in schemas:
        (folder / f"{each['name']}.json").write_text(json.dumps(each), encoding="utf-8")
    codes = [{"name": "NONE", "code": 0, "message": None}]
    (folder / "ErrorCodes.json").write_text(json.dumps(codes), encoding="utf-8")
    return folder


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


@pytest.mark.parametrize(("kind", "value", "old", "compact"), KINDS)
def test_a_field_in_both_encodings(
    tmp_path: Path, kind: str, value: Any, old: str, compact: str
) -> None:
    probe = class_of(tmp_path, field(kind))
    message = probe(it=value)
    assert message.encode(0).hex() == old
    assert message.encode(2).hex() == compact + "00"
    assert probe.decode(bytes.fromhex(old), 0) == message
    assert probe.decode(bytes.fromhex(compact + "00"), 2) == message


@pytest.mark.parametrize(
    ("kind", "old", "compact"),
    [
        ("string", "ffff", "00"),
        ("bytes", "ffffffff", "00"),
        ("records", "ffffffff", "00"),
        ("[]int32", "ffffffff", "00"),
        ("[]string", "ffffffff", "00"),
        ("Inner", "ff", "ff"),
        ("[]Inner", "ffffffff", "00"),
    ],
)
def test_null_where_it_is_allowed_and_where_not(
    tmp_path: Path, kind: str, old: str, compact: str
) -> None:
    extra: dict[str, Any] = {"fields": INNER} if "Inner" in kind else {}
    probe = class_of(tmp_path, field(kind, nullableVersions="0+", **extra))
    message = probe(it=None)
    if kind == "Inner":
        message.it = None
    assert message.encode(0).hex() == old
    assert message.encode(2).hex() == compact + "00"
    assert probe.decode(bytes.fromhex(old), 0) == message
    strict = class_of(tmp_path, field(kind, nullableVersions="1-1", **extra))
    message = strict()
    message.it = None
    with pytest.raises(EncodeError):
        message.encode(0)
    with pytest.raises(DecodeError):
        strict.decode(bytes.fromhex(old), 0)


def test_structs_alone_and_in_arrays(tmp_path: Path) -> None:
    probe = class_of(tmp_path, field("Inner", fields=INNER))
    inner = probe.Inner(a=1, b="x")
    message = probe(it=inner)
    assert message.encode(1).hex() == "0001" + "000178"
    assert message.encode(2).hex() == "0001" + "0278" + "00" + "00"
    with pytest.raises(UnsupportedVersionError, match="non-default b at version 0"):
        message.encode(0)
    nullable = class_of(tmp_path, field("Inner", fields=INNER, nullableVersions="0+"))
    assert nullable(it=nullable.Inner(a=1, b="x")).encode(1).hex() == "01" + "0001" + "000178"


def test_tagged_fields_stand_by_tag_and_only_when_not_default(tmp_path: Path) -> None:
    probe = class_of(
        tmp_path,
        field("int32", "2+", name="B", tag=1, taggedVersions="2+"),
        field("string", "2+", name="A", tag=0, taggedVersions="2+", default="d"),
        field("int8", name="C"),
    )
    message = probe(b=5, a="xy", c=9)
    assert message.encode(2).hex() == "09" + "02" + "0003037879" + "010400000005"
    assert probe.decode(message.encode(2), 2) == message
    assert probe().encode(2).hex() == "0000"
    with pytest.raises(UnsupportedVersionError, match="non-default b at version 1"):
        message.encode(1)


@pytest.mark.parametrize("versions", ["0-1", "3+"])
def test_a_field_that_comes_or_goes(tmp_path: Path, versions: str) -> None:
    probe = class_of(tmp_path, field("int8", name="A"), field("int8", versions, name="B"))
    with_it = 0 if versions == "0-1" else 3
    without = 3 - with_it
    message = probe(a=1, b=2)
    assert probe.decode(message.encode(with_it), with_it) == message
    with pytest.raises(UnsupportedVersionError, match="non-default b"):
        message.encode(without)
    message = probe(a=1)
    assert probe.decode(message.encode(without), without) == message


@pytest.fixture(scope="module")
def files() -> dict[Path, str]:
    return generated_files(SCHEMAS)


def test_the_committed_code_is_current(files: dict[Path, str]) -> None:
    assert differences(files, WIRE) == []


@pytest.mark.process
def test_two_runs_give_the_same_bytes_whatever_the_hash_seed(files: dict[Path, str]) -> None:
    program = (
        "import hashlib, pathlib, sys\n"
        "from kvorum.codegen.generate import generated_files\n"
        "files = generated_files(pathlib.Path(sys.argv[1]))\n"
        "text = ''.join(f'{path}{files[path]}' for path in sorted(files))\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, str(SCHEMAS)],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(files) > 180


def test_check_finds_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = write_folder(tmp_path / "schemas", schema(field("int32")))
    out = tmp_path / "wire"
    assert generate(schemas, out, is_check=True) == 1
    assert "messages/probe.py differs" in capsys.readouterr().err
    assert generate(schemas, out, is_check=False) == 0
    assert generate(schemas, out, is_check=True) == 0
    (out / "messages" / "probe.py").write_text("# changed\n")
    (out / "messages" / "stale.py").write_text("")
    assert generate(schemas, out, is_check=True) == 1
    said = capsys.readouterr().err
    assert "messages/probe.py differs; run 'make generate'" in said
    assert "messages/stale.py has no schema" in said


def test_writing_removes_messages_without_a_schema(tmp_path: Path) -> None:
    schemas = write_folder(tmp_path / "schemas", schema(field("int32")))
    out = tmp_path / "wire"
    (out / "messages").mkdir(parents=True)
    (out / "messages" / "stale.py").write_text("")
    write(generated_files(schemas), out)
    assert sorted(file.name for file in (out / "messages").iterdir()) == ["__init__.py", "probe.py"]


def test_our_own_messages_have_a_package_of_their_own_and_stand_in_no_table(tmp_path: Path) -> None:
    schemas = write_folder(tmp_path / "schemas", schema(field("int32")))
    write_folder(schemas / "kvorum", schema(field("int8"), name="Ours"))
    out = tmp_path / "wire"
    (out / "own_messages").mkdir(parents=True)
    (out / "own_messages" / "stale.py").write_text("")
    files = generated_files(schemas)
    write(files, out)
    names = sorted(file.name for file in (out / "own_messages").iterdir())
    assert names == ["__init__.py", "ours.py"]
    assert "class Ours(Message)" in (out / "own_messages" / "ours.py").read_text()
    assert not (out / "messages" / "ours.py").exists()
    assert "Ours" not in files[Path("api_table.py")]
    (out / "own_messages" / "stale.py").write_text("")
    assert differences(files, out) == ["own_messages/stale.py has no schema"]


def test_an_api_that_was_removed_gives_no_module(tmp_path: Path) -> None:
    removed = schema(name="GoneRequest", type="request", apiKey=4, validVersions="none")
    schemas = write_folder(tmp_path / "schemas", removed, schema(field("int32")))
    names = {str(path) for path in generated_files(schemas)}
    assert "messages/gone.py" not in names
    assert "messages/probe.py" in names


def test_request_and_response_share_a_module(tmp_path: Path) -> None:
    request = schema(name="PingRequest", type="request", apiKey=7, listeners=["broker"])
    response = schema(name="PingResponse", type="response", apiKey=7)
    found = generated_files(write_folder(tmp_path / "schemas", request, response))
    text = found[Path("messages/ping.py")]
    assert "class PingRequest(Message)" in text
    assert "class PingResponse(Message)" in text
    assert '7, "Ping", "ping"' in found[Path("api_table.py")]


def test_each_api_has_a_named_key(tmp_path: Path) -> None:
    later = schema(name="PingPongRequest", type="request", apiKey=9, listeners=["broker"])
    first = schema(name="RaftPingRequest", type="request", apiKey=7, listeners=["broker"])
    gone = schema(name="GoneRequest", type="request", apiKey=4, validVersions="none")
    found = generated_files(write_folder(tmp_path / "schemas", later, first, gone))
    text = found[Path("api_keys.py")]
    assert text.endswith("    RAFT_PING = 7\n    PING_PONG = 9\n")
    assert "GONE" not in text


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CodegenError, match="has no schema files"):
        generated_files(tmp_path)


def test_the_package_of_messages_imports_nothing() -> None:
    text = (WIRE / "messages" / "__init__.py").read_text()
    assert "import " not in text.replace("import what is needed", "")
