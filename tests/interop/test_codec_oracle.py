"""Kafka's generated message classes and ours agree, both ways, on all messages and versions."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import TypeAlias

import pytest
from tests.interop.kafka_schemas import CodecOracle
from tests.support.kafka.java import Java
from tests.support.random_messages import random_message

from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import message_class
from kvorum.wire.json_form import to_json
from kvorum.wire.primitives import Message

pytestmark = pytest.mark.sample

KAFKAS_MESSAGES_MIN = 200_000
KAFKAS_MESSAGES_PER_PAIR = 280
OUR_MESSAGES_PER_PAIR = 40
JSON_EVERY = 10
SEED = 431
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
RECORDS_KEYS = frozenset({"records", "unalignedRecords"})


@pytest.fixture(scope="module")
def oracle(java: Java) -> CodecOracle:
    return CodecOracle(java)


def every_pair() -> Iterator[tuple[type[Message], int]]:
    for name in sorted(MODULES):
        kind = message_class(name)
        for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1):
            yield kind, version


def kafkas_json(message: Message, version: int) -> Json:
    """Give our JSON as Kafka's converters do, which print every blob of records as empty."""
    return without_records(to_json(message, version))


def without_records(value: Json) -> Json:
    if isinstance(value, list):
        return [without_records(element) for element in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "" if key in RECORDS_KEYS and inner is not None else without_records(inner)
        for key, inner in value.items()
    }


def test_we_read_and_write_what_kafka_writes(oracle: CodecOracle) -> None:
    counts: Counter[tuple[str, int]] = Counter()
    with closing(oracle.random(seed=SEED, count=KAFKAS_MESSAGES_PER_PAIR)) as answers:
        for number, judged in enumerate(answers):
            message = message_class(judged.message).decode(judged.data, judged.version)
            name = f"message {number}: {judged.message} version {judged.version}"
            assert message.encode(judged.version) == judged.data, name
            if number % JSON_EVERY == 0:
                assert kafkas_json(message, judged.version) == json.loads(judged.json), name
            counts[judged.message, judged.version] += 1
    assert set(counts) == {(kind.NAME, version) for kind, version in every_pair()}
    assert counts.total() >= KAFKAS_MESSAGES_MIN
    assert min(counts.values()) == KAFKAS_MESSAGES_PER_PAIR


def test_kafka_reads_and_writes_what_we_write(oracle: CodecOracle) -> None:
    random = Random(SEED)
    ours = [
        (random_message(kind, version, random), version)
        for kind, version in every_pair()
        for _ in range(OUR_MESSAGES_PER_PAIR)
    ]
    questions = [(message.NAME, version, message.encode(version)) for message, version in ours]
    with closing(oracle.echo(questions)) as answers:
        for (message, version), question, judged in zip(ours, questions, answers, strict=True):
            name = f"{message.NAME} version {version}: {message!r}"
            assert judged.refusal == "", name
            assert (judged.message, judged.version, judged.data) == question, name
            assert json.loads(judged.json) == kafkas_json(message, version), name


def test_a_wrong_byte_is_noticed(oracle: CodecOracle) -> None:
    """The judge can say no: to bytes that it cannot read, and to those that mean something else."""
    kind = message_class("HeartbeatRequest")
    data = kind().encode(4)
    refused, changed = oracle.echo(
        [("HeartbeatRequest", 4, data[:-1]), ("HeartbeatRequest", 3, data[:2] + b"\x01" + data[3:])]
    )
    assert refused.refusal
    assert changed.refusal or changed.data != data
