"""Facts are taken out of jars, prose and comments are left behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import PATIENCE_S
from tests.unit.codegen.made_up_jars import ERRORS, errors_class, make_jar

from kvorum.codegen.class_file import ClassFile
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import read_schemas
from kvorum.codegen.sync import error_codes, message_facts, read_error_codes, sync, without_comments

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
