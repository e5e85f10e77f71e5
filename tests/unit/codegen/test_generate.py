"""The committed code is what the schemas give, and generating is repeatable."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.source_tree import ROOT
from tests.unit.codegen.schemas import field, schema, write_folder

from kvorum.codegen.__main__ import generate
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.generate import differences, generated_files, write

SCHEMAS = ROOT / "json-schemas"
WIRE = ROOT / "wire" / "kvorum" / "wire"


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
