"""Every message in every version: our bytes and our JSON are those of Kafka's own classes."""

from collections import Counter
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.support.golden_data import GOLDEN, read_json_lines

from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import message_class
from kvorum.wire.errors import DecodeError
from kvorum.wire.json_form import element_class, fields_of, from_json, to_json
from kvorum.wire.primitives import Message, Struct

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
CORPUS = GOLDEN / "codec-corpus.jsonl.gz"


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    return list(read_json_lines(CORPUS))


def cases(corpus: list[dict[str, Any]]) -> Iterator[tuple[type[Message], int, bytes, Any, str]]:
    """Yield (class, version, bytes, JSON, name for a report)."""
    for number, line in enumerate(corpus):
        name = f"line {number}: {line['message']} version {line['version']}"
        kind = message_class(line["message"])
        yield kind, line["version"], bytes.fromhex(line["hex"]), line["json"], name


def without_tags(json: Json) -> Json:
    """Leave out the unknown tags: the corpus adds them, Kafka's JSON has no form for them."""
    if isinstance(json, list):
        return [without_tags(element) for element in json]
    if isinstance(json, dict):
        return {key: without_tags(value) for key, value in json.items() if key != "_tags"}
    return json


def structs(value: Struct, json: Any, depth: int) -> Iterator[tuple[int, Struct, dict[str, Any]]]:
    """Yield every struct of a message beside its JSON, with how deep it is nested."""
    yield depth, value, json
    for field in fields_of(type(value)):
        found, source = getattr(value, field.attribute), json.get(field.json_name)
        if source is None or element_class(type(value), field.kind) is None:
            continue
        if not field.kind.startswith("[]"):
            found, source = [found], [source]
        for element, inner in zip(found, source, strict=True):
            yield from structs(element, inner, depth + 1)


def decodes(kind: type[Message], data: bytes, version: int) -> bool:
    try:
        kind.decode(data, version)
    except DecodeError:
        return False
    return True


def test_bytes_decode_and_encode_to_the_same(corpus: list[dict[str, Any]]) -> None:
    for kind, version, data, _, name in cases(corpus):
        assert kind.decode(data, version).encode(version) == data, name


def test_json_form_of_the_bytes_is_kafkas(corpus: list[dict[str, Any]]) -> None:
    for kind, version, data, json, name in cases(corpus):
        found = to_json(kind.decode(data, version), version)
        expected = without_tags(json)
        assert found == expected, name
        assert dumps(found) == dumps(expected), f"{name}: order of the keys"


def test_json_form_encodes_to_kafkas_bytes(corpus: list[dict[str, Any]]) -> None:
    checked = 0
    for kind, version, data, json, name in cases(corpus):
        if '"_tags":' not in dumps(json):
            message = from_json(kind, json, version)
            assert message.encode(version) == data, name
            assert message == kind.decode(data, version), name
            checked += 1
    assert checked > 4000


def test_unknown_tags_are_kept_at_every_depth(corpus: list[dict[str, Any]]) -> None:
    depths: Counter[int] = Counter()
    for kind, version, data, json, name in cases(corpus):
        for depth, value, source in structs(kind.decode(data, version), json, 0):
            expected = [(tag, bytes.fromhex(payload)) for tag, payload in source.get("_tags", [])]
            assert (value.unknown_tagged_fields or []) == expected, name
            depths[depth] += bool(expected)
    assert all(depths[depth] >= 10 for depth in range(3)), depths


def test_every_prefix_of_a_message_is_an_error(corpus: list[dict[str, Any]]) -> None:
    seen: set[tuple[str, int]] = set()
    for kind, version, data, _, name in cases(corpus):
        if (kind.NAME, version) in seen or len(data) > 400:
            continue
        seen.add((kind.NAME, version))
        decoded = [length for length in range(len(data)) if decodes(kind, data[:length], version)]
        assert decoded == [], name
    assert len(seen) >= 700


def test_one_byte_too_many_is_an_error(corpus: list[dict[str, Any]]) -> None:
    for kind, version, data, _, _ in cases(corpus):
        with pytest.raises(DecodeError, match="bytes too many"):
            kind.decode(data + b"\x00", version)


def test_corpus_knows_every_message_that_we_have(corpus: list[dict[str, Any]]) -> None:
    ours = {
        (name, version)
        for name in MODULES
        for version in range(message_class(name).MIN_VERSION, message_class(name).MAX_VERSION + 1)
    }
    assert ours == {(line["message"], line["version"]) for line in corpus}


def test_the_corpus_is_where_the_fixtures_say(golden: Path) -> None:
    assert golden / "codec-corpus.jsonl.gz" == CORPUS
