"""Another release of Kafka is one `sync` and one `generate` away: tried with three older ones."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from tests.support.golden_data import read_json_lines
from tests.support.kafka.fetch_jars import OLDEST_NODE
from tests.support.node_process import run_python
from tests.support.random_messages import random_message
from tests.support.waiting import PATIENCE_S

from kvorum.codegen.model import MessageSpec, module_name
from kvorum.codegen.parse import read_schemas
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.json_form import to_json
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.messages.response_header import ResponseHeader
from kvorum.wire.primitives import Message

pytestmark = pytest.mark.slow

MESSAGES_MIN = {"4.3.1": 270, "node-4.0.0": 240, OLDEST_NODE: 230}


def codegen(*arguments: str) -> str:
    done = run_python("-m", "kvorum.codegen", *arguments, timeout_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True, slots=True)
class Release:
    name: str
    folder: Path
    specs: dict[str, MessageSpec]

    def message_class(self, name: str) -> type[Message]:
        kind: type[Message] = getattr(self._module(module_name(self.specs[name])), name)
        return kind

    def _module(self, name: str) -> ModuleType:
        full_name = f"kafka_{self.name.replace('.', '_')}_{name}"
        if full_name not in sys.modules:
            file = self.folder / "wire" / "messages" / f"{name}.py"
            found = importlib.util.spec_from_file_location(full_name, file)
            assert found is not None
            assert found.loader is not None
            sys.modules[full_name] = importlib.util.module_from_spec(found)
            found.loader.exec_module(sys.modules[full_name])
        return sys.modules[full_name]


@pytest.fixture(scope="module", params=MESSAGES_MIN)
def release(
    request: pytest.FixtureRequest,
    kafka_jars: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Release]:
    name: str = request.param
    folder = tmp_path_factory.mktemp(f"kafka-{name}")
    jars = sorted(kafka_jars(name).glob("kafka-*.jar"))
    schemas = ("--schemas", str(folder / "schemas"))
    codegen("sync", *(part for jar in jars for part in ("--jar", str(jar))), *schemas)
    codegen("generate", *schemas, "--out", str(folder / "wire"))
    yield Release(name, folder, {spec.name: spec for spec in read_schemas(folder / "schemas")})
    for module in [key for key in sys.modules if key.startswith("kafka_" + name.replace(".", "_"))]:
        del sys.modules[module]


def every_pair(release: Release) -> Iterator[tuple[type[Message], int]]:
    for spec in release.specs.values():
        for version in spec.versions.each():
            yield release.message_class(spec.name), version


def test_all_messages_of_the_release_are_there(release: Release) -> None:
    assert len(release.specs) >= MESSAGES_MIN[release.name]
    classes = {kind.NAME for kind, _ in every_pair(release)}
    assert classes == {name for name, spec in release.specs.items() if spec.versions}


def test_generating_again_gives_the_same_bytes(release: Release) -> None:
    again = release.folder / "again"
    schemas = ("--schemas", str(release.folder / "schemas"))
    codegen("generate", *schemas, "--out", str(again))
    codegen("generate", "--check", *schemas, "--out", str(again))
    first = sorted((release.folder / "wire").rglob("*.py"))
    assert [file.read_bytes() for file in first] == [
        file.read_bytes() for file in sorted(again.rglob("*.py"))
    ]


def test_random_messages_come_back(release: Release) -> None:
    random = Random(391)
    for kind, version in every_pair(release):
        for _ in range(3):
            message = random_message(kind, version, random)
            data = message.encode(version)
            assert kind.decode(data, version) == message
            assert kind.decode(data, version).encode(version) == data


@pytest.mark.parametrize("release", [OLDEST_NODE], indirect=True)
def test_frames_of_dropped_versions_decode_and_encode_to_the_same(
    golden: Path, release: Release
) -> None:
    """The frames captured from 3.9.1 hold versions that the reference release no longer has."""
    checked: set[tuple[str, int]] = set()
    for frame in read_json_lines(golden / "frames" / "static-3.9.1.jsonl.gz"):
        if "json" not in frame:
            continue
        data, version = bytes.fromhex(frame["frame_hex"]), frame["api_version"]
        kind = release.message_class(frame["api_name"] + frame["direction"].capitalize())
        is_flexible = version >= kind.FLEXIBLE_FROM
        if frame["direction"] == "request":
            _, start = RequestHeader.decode_from(data, 0, 2 if is_flexible else 1)
        else:
            is_new = is_flexible and frame["api_key"] != ApiKey.API_VERSIONS
            _, start = ResponseHeader.decode_from(data, 0, 1 if is_new else 0)
        message = kind.decode(data[start:], version)
        assert message.encode(version) == data[start:], frame["exchange"]
        assert to_json(message, version) == frame["json"], frame["exchange"]
        checked.add((kind.NAME, version))
    assert {("FetchRequest", 0), ("ProduceRequest", 2), ("CreateTopicsResponse", 0)} < checked
