"""Facts are taken out of jars, prose and comments are left behind."""

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import PATIENCE_S

from kvorum.codegen.class_file import ClassFile
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import read_schemas
from kvorum.codegen.sync import error_codes, message_facts, read_error_codes, sync, without_comments

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

    def field(self, name: str) -> int:
        described = self._add(struct.pack(">BHH", 12, self.utf8(name), self.utf8("LE;")))
        return self._add(struct.pack(">BHH", 9, self._add(struct.pack(">BH", 7, 1)), described))

    def constant(self, name: str, ordinal: int, code: int, message: str | None) -> bytes:
        """Return the instructions that make one constant and store it."""
        said = b"\x01" if message is None else b"\x13" + struct.pack(">H", self.string(message))
        return b"".join(
            (
                b"\xbb" + struct.pack(">H", 1) + b"\x59",
                b"\x13" + struct.pack(">H", self.string(name)),
                b"\x11" + struct.pack(">h", ordinal),
                b"\x11" + struct.pack(">h", code),
                said,
                b"\xb7" + struct.pack(">H", 1),
                b"\xb3" + struct.pack(">H", self.field(name)),
            )
        )

    def class_file(self, code: bytes) -> bytes:
        name, kind = self.utf8("<clinit>"), self.utf8("()V")
        attribute = self.utf8("Code")
        body = struct.pack(">HHI", 8, 0, len(code)) + code + bytes(4)
        method = struct.pack(">HHHH", 8, name, kind, 1) + struct.pack(">HI", attribute, len(body))
        head = struct.pack(">IIH", 0xCAFEBABE, 61, len(self._pool) + 1) + b"".join(self._pool)
        return head + bytes(6) + bytes(2) + bytes(2) + struct.pack(">H", 1) + method + body


def errors_class() -> bytes:
    assembler = Assembler()
    assembler.utf8("Errors")
    code = assembler.constant("UNKNOWN_SERVER_ERROR", 0, -1, "It went wrong.")
    code += assembler.constant("NONE", 1, 0, None)
    return assembler.class_file(code + b"\xb1")


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
def test_what_is_no_class_file(data: bytes) -> None:
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
