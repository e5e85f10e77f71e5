"""Facts are taken out of jars, and two made-up releases are compared: a line a difference."""

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.support.waiting import PATIENCE_S

from kvorum.codegen.class_file import ClassFile
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import read_schemas
from kvorum.codegen.release_diff import definition_differences, definitions_in, release_diff
from kvorum.codegen.sync import error_codes, message_facts, read_error_codes, sync, without_comments

Argument: TypeAlias = str | int | tuple[str, str] | None
ERRORS = "org/apache/kafka/common/protocol/Errors.class"
SOURCE = """// A licence at the head of the file.
{
  "apiKey": 3, "type": "metadata", "name": "Probe", // what it is
  "validVersions": "0-1", "flexibleVersions": "0+", /* more
  of it */
  "fields": [
    {"name": "It", "type": "string", "versions": "0+", "about": "Not // a comment."},
    {"name": "Late", "type": "int8", "versions": "1+", "tag": "0", "taggedVersions": "1+",
      "default": "5", "ignorable": true, "about": "Prose."}
  ]
}
"""
COMMON = "org/apache/kafka/server/common"
WIDGETS: Mapping[str, Any] = {
    "apiKey": 99, "type": "request", "name": "AlterWidgetsRequest", "listeners": ["broker"],
    "validVersions": "0", "flexibleVersions": "0+",
    "fields": [
        {"name": "Color", "type": "string", "versions": "0+", "about": "Prose."},
        {"name": "Widgets", "type": "[]Widget", "versions": "0+", "fields": [
            {"name": "Id", "type": "int32", "versions": "0+"},
            {"name": "Size", "type": "int32", "versions": "0+"}]}]}  # fmt: skip


class Assembler:
    """Builds the class file of an enum: just enough of it to hold constants."""

    def __init__(self) -> None:
        self._pool: list[bytes] = []

    def _add(self, entry: bytes) -> int:
        self._pool.append(entry)
        return len(self._pool)

    def utf8(self, text: str) -> int:
        data = text.encode()
        return self._add(struct.pack(">BH", 1, len(data)) + data)

    def string(self, text: str) -> int:
        return self._add(struct.pack(">BH", 8, self.utf8(text)))

    def field(self, owner: str, name: str) -> int:
        described = self._add(struct.pack(">BHH", 12, self.utf8(name), self.utf8("LE;")))
        of_class = self._add(struct.pack(">BH", 7, self.utf8(owner)))
        return self._add(struct.pack(">BHH", 9, of_class, described))

    def pushed(self, argument: Argument) -> bytes:
        """Return the instruction that pushes a literal, or a static field: (class, name)."""
        if argument is None:
            return b"\x01"
        if isinstance(argument, int):
            return b"\x11" + struct.pack(">h", argument)
        if isinstance(argument, str):
            return b"\x13" + struct.pack(">H", self.string(argument))
        return b"\xb2" + struct.pack(">H", self.field(*argument))

    def constant(self, owner: str, name: str, ordinal: int, *arguments: Argument) -> bytes:
        """Return the instructions that make one constant and store it."""
        return b"".join(
            (
                b"\xbb" + struct.pack(">H", 1) + b"\x59",
                *(self.pushed(argument) for argument in (name, ordinal, *arguments)),
                b"\xb7" + struct.pack(">H", 1),
                b"\xb3" + struct.pack(">H", self.field(owner, name)),
            )
        )

    def class_file(self, code: bytes) -> bytes:
        name, kind = self.utf8("<clinit>"), self.utf8("()V")
        attribute = self.utf8("Code")
        body = struct.pack(">HHI", 8, 0, len(code)) + code + bytes(4)
        method = struct.pack(">HHHH", 8, name, kind, 1) + struct.pack(">HI", attribute, len(body))
        head = struct.pack(">IIH", 0xCAFEBABE, 61, len(self._pool) + 1) + b"".join(self._pool)
        return head + bytes(6) + bytes(2) + bytes(2) + struct.pack(">H", 1) + method + body


def enum_class(
    owner: str, constants: Mapping[str, Sequence[Argument]], **second_names: str
) -> bytes:
    """Return the class file of an enum; a second name is a static field that is a constant."""
    assembler = Assembler()
    code = b"".join(
        assembler.constant(owner, name, ordinal, *arguments)
        for ordinal, (name, arguments) in enumerate(constants.items())
    )
    code += b"\xb8" + struct.pack(">H", 1) + b"\xb3"
    code += struct.pack(">H", assembler.field(owner, "$VALUES"))
    for second, first in second_names.items():
        code += assembler.pushed((owner, first)) + b"\xb3"
        code += struct.pack(">H", assembler.field(owner, second))
    return assembler.class_file(code + b"\xb1")


def errors_class(**others: tuple[int, str]) -> bytes:
    """Return the class file of two error codes and `others`."""
    two = {"UNKNOWN_SERVER_ERROR": (-1, "It went wrong."), "NONE": (0, None)}
    return enum_class("Errors", {**two, **others})


def make_jar(file: Path, **entries: str | bytes) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file


def jar_with(tmp_path: Path, *entries: tuple[str, str | bytes]) -> Path:
    return make_jar(tmp_path / "probe.jar", **dict(entries))


def test_comments_go_and_strings_stay() -> None:
    found: dict[str, Any] = json.loads(without_comments(SOURCE))
    assert found["fields"][0]["about"] == "Not // a comment."


def test_only_facts_are_kept_and_tags_are_numbers() -> None:
    facts = message_facts(json.loads(without_comments(SOURCE)))
    assert "about" not in json.dumps(facts)
    late = {
        "name": "Late", "type": "int8", "versions": "1+", "tag": 0, "taggedVersions": "1+",
        "default": "5", "ignorable": True,
    }  # fmt: skip
    assert facts["fields"] == [{"name": "It", "type": "string", "versions": "0+"}, late]


def test_a_jar_becomes_a_folder_of_schemas(tmp_path: Path) -> None:
    jar = jar_with(tmp_path, ("common/metadata/Probe.json", SOURCE), (ERRORS, errors_class()))
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "Stale.json").write_text("{}")
    assert sync([jar], folder) == 1
    assert sorted(file.name for file in folder.iterdir()) == ["ErrorCodes.json", "Probe.json"]
    assert json.loads((folder / "Probe.json").read_text())["log"] == "cluster-metadata"
    (spec,) = read_schemas(folder)
    assert (spec.name, spec.api_key, spec.versions.highest) == ("Probe", 3, 1)
    first = (folder / "Probe.json").read_bytes()
    sync([jar, jar], folder)
    assert (folder / "Probe.json").read_bytes() == first


def test_error_codes_come_out_of_the_class_file() -> None:
    facts = [(fact.name, fact.code, fact.message) for fact in error_codes(errors_class())]
    assert facts == [("UNKNOWN_SERVER_ERROR", -1, "It went wrong."), ("NONE", 0, None)]


def test_error_codes_are_written_and_read_back(tmp_path: Path) -> None:
    jar = jar_with(tmp_path, ("common/message/Probe.json", SOURCE), (ERRORS, errors_class()))
    sync([jar], tmp_path / "schemas")
    assert read_error_codes(tmp_path / "schemas") == error_codes(errors_class())


def test_two_different_messages_of_one_name_are_refused(tmp_path: Path) -> None:
    first = make_jar(tmp_path / "a.jar", **{"common/message/Probe.json": SOURCE})
    second = make_jar(
        tmp_path / "b.jar", **{"common/message/Probe.json": SOURCE.replace('"0-1"', '"0-2"')}
    )
    with pytest.raises(CodegenError, match=r"b\.jar: a second, different Probe"):
        sync([first, second], tmp_path / "schemas")


@pytest.mark.parametrize(
    "entries", [(), (("common/message/Probe.json", SOURCE),), ((ERRORS, errors_class()),)]
)
def test_jars_that_hold_not_everything(
    tmp_path: Path, entries: tuple[tuple[str, str | bytes], ...]
) -> None:
    jar = jar_with(tmp_path, *entries)
    with pytest.raises(CodegenError, match="no message schemas, or no error codes"):
        sync([jar], tmp_path / "schemas")


@pytest.mark.parametrize("data", [b"\x00" * 40, b"PK\x03\x04" + bytes(40)])
def test_anything_that_is_not_a_class_file(data: bytes) -> None:
    with pytest.raises(CodegenError, match="not a class file"):
        ClassFile(data)


@pytest.mark.process
def test_the_command_fails_in_one_line(tmp_path: Path) -> None:
    no_jar = tmp_path / "no.jar"
    no_jar.write_bytes(b"not a zip file")
    for arguments in (["sync", "--jar", str(no_jar)], ["sync", "--jar", str(tmp_path / "gone")]):
        done = subprocess.run(
            [sys.executable, "-m", "kvorum.codegen", *arguments, "--schemas", str(tmp_path / "s")],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1


def write_release(
    folder: Path, *schemas: Mapping[str, Any], metadata_versions: int = 2, **errors: tuple[int, str]
) -> Path:
    """Write jars with these messages of kafka-clients and these errors; the newest level is not
    for production."""
    versions = {
        f"IBP_9_{number}_IV0": (number, f"9.{number}", "IV0", number % 2)
        for number in range(1, metadata_versions + 1)
    }
    latest = f"IBP_9_{metadata_versions - 1}_IV0"
    owner = f"{COMMON}/MetadataVersion"
    metadata = enum_class(owner, versions, MINIMUM_VERSION="IBP_9_1_IV0", LATEST_PRODUCTION=latest)
    levels = {"WV_0": (0, (owner, "MINIMUM_VERSION")), "WV_1": (1, (owner, latest))}
    widgets = enum_class(f"{COMMON}/WidgetVersion", levels, LATEST_PRODUCTION="WV_1")
    named = {
        "WIDGETS": ("widget.version", (f"{COMMON}/WidgetVersion", "LATEST_PRODUCTION")),
        "TEST": ("test.feature.version", (f"{COMMON}/Unread", "LATEST_PRODUCTION")),
    }
    folder.mkdir()
    make_jar(
        folder / f"kafka-clients-{folder.name}.jar",
        **{ERRORS: errors_class(**errors)},
        **{f"common/message/{one['name']}.json": json.dumps(one) for one in schemas},
    )
    make_jar(
        folder / f"kafka-server-common-{folder.name}.jar",
        **{f"{owner}.class": metadata, f"{COMMON}/WidgetVersion.class": widgets},
        **{f"{COMMON}/Feature.class": enum_class(f"{COMMON}/Feature", named)},
    )
    return folder


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def test_one_release_beside_itself_differs_in_nothing(tmp_path: Path) -> None:
    same = write_release(tmp_path / "9.1", WIDGETS)
    text = release_diff(same, same)
    assert text.count("Nothing differs.") == text.count("\n## ") - 1
    assert text.endswith(
        "Not compared: they need a JDK on the path, and "
        "tests/support/java/ConfigDefinitions.java in this folder.\n"
    )


def test_a_message_that_changes_has_a_line_for_each_fact(tmp_path: Path) -> None:
    color, widgets = WIDGETS["fields"]
    identity, _ = widgets["fields"]
    weight = {"name": "Weight", "type": "int32", "versions": "1+", "default": "7"}
    other = {**widgets, "versions": "1+", "fields": [weight, identity]}
    changed = {**WIDGETS, "validVersions": "0-1", "latestVersionUnstable": True,
               "listeners": ["broker", "controller"], "fields": [other, color]}  # fmt: skip
    old, new = (
        write_release(tmp_path / name, one) for name, one in (("9.1", WIDGETS), ("9.2", changed))
    )
    subject = "| AlterWidgetsRequest (99) |"
    assert [line for line in release_diff(old, new).splitlines() if line.startswith(subject)] == [
        f"{subject} validVersions | 0 | 0-1 |",
        f"{subject} latestVersionUnstable | - | true |",
        f"{subject} listeners | broker | broker, controller |",
        f"{subject} field Widgets | []Widget, versions 0+ | []Widget, versions 1+ |",
        f"{subject} field Widgets.Weight | - | int32, versions 1+, default 7 |",
        f"{subject} field Widgets.Size | int32, versions 0+ | - |",
        f"{subject} order of fields | Color, Widgets, Widgets.Id | Widgets, Widgets.Id, Color |",
    ]


def test_what_is_new_and_gone_stands_in_the_table_of_its_kind(tmp_path: Path) -> None:
    record: Mapping[str, Any] = {
        "type": "data", "name": "Cog", "validVersions": "0", "flexibleVersions": "0+", "fields": [],
    }  # fmt: skip
    old = write_release(tmp_path / "9.1", WIDGETS, LOST=(7, "Lost | found."))
    new = write_release(tmp_path / "9.2", record, metadata_versions=3, FOUND=(8, "Found."))
    _, apis, records, errors, features, _ = release_diff(old, new).split("\n## ")
    assert apis.splitlines()[-1] == (
        "| AlterWidgetsRequest (99) | gone | validVersions 0, flexibleVersions 0+, "
        "listeners broker, fields 4 | - |"
    )
    assert records.splitlines()[-1] == (
        "| Cog | new | - | validVersions 0, flexibleVersions 0+, fields 0 |"
    )
    assert errors.splitlines()[-2:] == [
        "| 7 | gone | LOST: Lost \\| found. | - |",
        "| 8 | new | - | FOUND: Found. |",
    ]
    assert features.splitlines()[4:] == [
        "| metadata.version | production level | 1 | 2 |",
        "| metadata.version | level 2 | 9.2-IV0, unstable | 9.2-IV0, production |",
        "| metadata.version | level 3 | - | 9.3-IV0, new records, unstable |",
        "| widget.version | level 1 | 9.1-IV0, production | 9.2-IV0, production |",
    ]


def test_configuration_keys_differ_fact_by_fact() -> None:
    def printed(*rows: Mapping[str, Any]) -> str:
        return json.dumps({"topic": rows, "topic_synonyms": {"b": [["log.b", 1]]}})

    same = {"name": "a", "type": "INT", "default": "1", "required": False}
    old = definitions_in(printed(same, {**same, "name": "b"}, {**same, "name": "gone"}))
    changed = {**same, "name": "b", "default": "2", "validator": ["Range", 0, None]}
    new = definitions_in(printed(same, changed, {**same, "name": "c", "required": True}))
    assert definition_differences(old, new) == {
        "Configuration keys: topic": [
            ("b", "default", "1", "2"),
            ("b", "validator", "-", '["Range", 0, null]'),
            ("c", "new", "-", "INT, default 1, required"),
            ("gone", "gone", "INT, default 1", "-"),
        ]
    }


def test_a_release_without_the_enum_of_features_is_refused(tmp_path: Path) -> None:
    whole = write_release(tmp_path / "9.1", WIDGETS)
    (whole / "kafka-server-common-9.1.jar").unlink()
    with pytest.raises(CodegenError, match="no org/apache/kafka/server/common/Feature"):
        release_diff(whole, whole)
