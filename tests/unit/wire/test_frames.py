"""Captured frames, and all messages in all versions: our bytes and our JSON are those of Kafka."""

from collections import Counter
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from tests.support.golden_data import GOLDEN, read_json_lines

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import API_SPECS, message_class, request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import DecodeError, UnsupportedVersionError
from kvorum.wire.headers import (
    FrameSizeError,
    decode_request_frame,
    decode_request_header,
    decode_response_frame,
    encode_request_frame,
    encode_response_frame,
    request_header_version,
    response_header_version,
    take_frame,
    with_size,
)
from kvorum.wire.json_form import element_class, fields_of, from_json, to_json
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.primitives import Message, Struct

SETS = ("dynamic-4.3.1", "ladder-4.3.1", "static-3.9.1")
CAPTURED_RELEASE = "4.3.1"
RENAMED = {
    ("StreamsGroupHeartbeatResponse", "acceptableRecoveryLagLegacy"): "acceptableRecoveryLag",
    ("TxnOffsetCommitRequest", "generationIdOrMemberEpoch"): "generationId",
}
"""Fields to which 4.4.0 has given another name."""
Frame = dict[str, Any]
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
CORPUS = GOLDEN / "codec-corpus.jsonl.gz"


def frames_of(golden: Path, name: str) -> list[Frame]:
    return list(read_json_lines(golden / "frames" / f"{name}.jsonl.gz"))


def known_frames(golden: Path, name: str, direction: str) -> Iterator[Frame]:
    """Yield the frames that are what they say, of versions that the reference release has."""
    for frame in frames_of(golden, name):
        spec = API_SPECS[frame["api_key"]]
        if (
            frame["direction"] == direction
            and spec.min_version <= frame["api_version"] <= spec.max_version
            and "json" in frame
        ):
            yield frame


def assert_json(message: Message, frame: Frame) -> None:
    """Compare with Kafka's JSON; older releases name many fields otherwise."""
    if frame["release"] == CAPTURED_RELEASE:
        json = cast("dict[str, Any]", to_json(message, frame["api_version"]))
        names = {key: RENAMED.get((message.NAME, key), key) for key in json}
        assert {names[key]: value for key, value in json.items()} == frame["json"], frame[
            "exchange"
        ]


@pytest.mark.parametrize("name", SETS)
def test_requests_decode_and_encode_to_the_same(golden: Path, name: str) -> None:
    checked: Counter[int] = Counter()
    for frame in known_frames(golden, name, "request"):
        data = bytes.fromhex(frame["frame_hex"])
        key, version = frame["api_key"], frame["api_version"]
        header, body = decode_request_frame(data)
        assert (header.request_api_key, header.request_api_version) == (key, version)
        assert header.correlation_id == frame["correlation_id"]
        assert header.client_id == frame["client_id"]
        request = request_class(key).decode(body, version)
        assert_json(request, frame)
        again = encode_request_frame(
            request,
            version=version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
        )
        assert again == data, frame["exchange"]
        checked[key] += 1
    assert len(checked) >= 20


@pytest.mark.parametrize("name", SETS)
def test_responses_decode_and_encode_to_the_same(golden: Path, name: str) -> None:
    checked: Counter[int] = Counter()
    for frame in known_frames(golden, name, "response"):
        data = bytes.fromhex(frame["frame_hex"])
        key, version = frame["api_key"], frame["api_version"]
        header, response = decode_response_frame(
            data, response_class=response_class(key), version=version
        )
        assert header.correlation_id == frame["correlation_id"]
        assert_json(response, frame)
        again = encode_response_frame(
            response, version=version, correlation_id=header.correlation_id
        )
        assert again == data, frame["exchange"]
        checked[key] += 1
    assert len(checked) >= 20


@pytest.mark.parametrize("name", ["dynamic-4.3.1", "static-3.9.1"])
def test_a_version_from_the_future_is_answered_in_version_zero(golden: Path, name: str) -> None:
    asked, answered = (frame for frame in frames_of(golden, name) if frame["api_version"] == 99)
    header, _ = decode_request_frame(bytes.fromhex(asked["frame_hex"]))
    assert (header.request_api_key, header.request_api_version) == (ApiKey.API_VERSIONS, 99)
    answer, response = decode_response_frame(
        bytes.fromhex(answered["frame_hex"]), response_class=ApiVersionsResponse, version=0
    )
    assert answer.correlation_id == header.correlation_id
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [entry.api_key for entry in response.api_keys] == [ApiKey.API_VERSIONS]


def test_a_client_that_sends_bytes_too_many_is_understood(golden: Path) -> None:
    """librdkafka's admin client adds three bytes to a Metadata request; Kafka ignores them."""
    (frame,) = (
        frame
        for frame in frames_of(golden, "static-3.9.1")
        if "json" not in frame and frame["api_version"] != 99
    )
    data = bytes.fromhex(frame["frame_hex"])
    _, start = decode_request_header(data)
    request, end = MetadataRequest.decode_from(data, start, frame["api_version"])
    assert request == MetadataRequest(topics=None, allow_auto_topic_creation=False)
    assert len(data) - end == 3
    with pytest.raises(DecodeError, match="MetadataRequest at byte 4: 3 bytes too many"):
        MetadataRequest.decode(data[start:], frame["api_version"])


def test_header_versions_follow_flexibility() -> None:
    assert {key for key, spec in API_SPECS.items() if spec.flexible_from > spec.max_version} == {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.OFFSET_DELETE,
    }
    for key, spec in API_SPECS.items():
        for version in range(spec.min_version, spec.max_version + 1):
            is_flexible = version >= spec.flexible_from
            assert request_header_version(key, version) == (2 if is_flexible else 1)
            expected = 1 if is_flexible and key != ApiKey.API_VERSIONS else 0
            assert response_header_version(key, version) == expected


def test_client_id_keeps_the_old_encoding_in_a_flexible_header() -> None:
    frame = encode_request_frame(
        HeartbeatRequest("g", 1, "m"), version=4, correlation_id=7, client_id="me"
    )
    assert frame.startswith(b"\x00\x0c\x00\x04\x00\x00\x00\x07\x00\x02me\x00\x02g")
    frame = encode_request_frame(
        HeartbeatRequest("g", 1, "m"), version=4, correlation_id=7, client_id=None
    )
    assert frame.startswith(b"\x00\x0c\x00\x04\x00\x00\x00\x07\xff\xff\x00\x02g")
    header, _ = decode_request_frame(frame)
    assert header.client_id is None


def test_a_frame_with_its_size_starts_with_an_int32() -> None:
    assert with_size(b"abc") == b"\x00\x00\x00\x03abc"


@pytest.mark.parametrize("length", range(10))
def test_a_frame_shorter_than_a_header_is_an_error(length: int) -> None:
    frame = encode_request_frame(HeartbeatRequest(), version=4, correlation_id=7, client_id="")
    with pytest.raises(DecodeError):
        decode_request_frame(frame[:length])


@pytest.mark.parametrize("key", [-1, 4, 5, 6, 7, 9999])
def test_a_key_that_does_not_exist_has_no_header(key: int) -> None:
    frame = key.to_bytes(2, "big", signed=True) + bytes(20)
    with pytest.raises(UnsupportedVersionError, match=f"no API with key {key}"):
        decode_request_frame(frame)


def test_bytes_after_a_response_are_an_error() -> None:
    frame = encode_response_frame(HeartbeatResponse(), version=4, correlation_id=7)
    with pytest.raises(DecodeError, match="1 bytes too many"):
        decode_response_frame(frame + b"x", response_class=HeartbeatResponse, version=4)


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


def test_frames_are_taken_out_of_what_came_one_after_the_other() -> None:
    received = bytearray(with_size(b"one") + with_size(b"") + with_size(b"another")[:-1])
    assert [take_frame(received, bytes_max=7) for _ in range(3)] == [b"one", b"", None]
    received += b"r"
    assert take_frame(received, bytes_max=7) == b"another"
    assert received == b""


@pytest.mark.parametrize("size", [-1, 3, 9])
def test_a_size_outside_of_the_limits_is_refused_and_nothing_is_taken(size: int) -> None:
    received = bytearray(size.to_bytes(4, "big", signed=True) + bytes(9))
    with pytest.raises(FrameSizeError) as refusal:
        take_frame(received, bytes_min=4, bytes_max=8)
    assert refusal.value.size == size
    assert len(received) == 13
