"""Reading configuration values: what is accepted, and that every refusal is one clear line."""

import math
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    InvalidConfigError,
    convert_to_text,
    default_value,
    parse_value,
    topic_defaults,
    validate_topic_configs,
)
from kvorum.metadata.config_definitions.java_text import parse_java_double, parse_java_integer
from kvorum.metadata.java_text import java_double_text

ALL = [
    *TOPIC_CONFIGS.values(),
    *BROKER_CONFIGS.values(),
    *GROUP_CONFIGS.values(),
    *CLIENT_METRICS_CONFIGS.values(),
]


def test_every_default_is_within_its_own_limits() -> None:
    for definition in ALL:
        if definition.default is not None:
            assert parse_value(definition, definition.default) == default_value(definition)
            assert convert_to_text(default_value(definition)) == definition.default


def test_a_key_without_default_is_asked_for() -> None:
    required = {definition.name for definition in ALL if definition.is_required}
    assert required == {"process.roles", "node.id", "controller.listener.names"}
    for name in required:
        with pytest.raises(InvalidConfigError, match=f'"{name}" which has no default value'):
            default_value(BROKER_CONFIGS[name])


@given(st.sampled_from(ALL), st.text(max_size=40))
def test_any_text_is_read_or_refused_by_name(definition: ConfigDefinition, text: str) -> None:
    with suppress(InvalidConfigError):
        parse_value(definition, text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_written_integer_is_read_back(number: int) -> None:
    assert parse_java_integer(str(number), bits=64) == number


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_an_integer_outside_of_its_width_is_refused(bits: int) -> None:
    limit = 1 << (bits - 1)
    assert parse_java_integer(str(-limit), bits=bits) == -limit
    for number in (limit, -limit - 1):
        with pytest.raises(ValueError, match=str(abs(number))):
            parse_java_integer(str(number), bits=bits)


@pytest.mark.parametrize("text", ["", "-", "1_000", " 1", "1 ", "0x10", "1.0", "9" * 100_000])
def test_what_java_takes_for_no_integer_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any message will do
        parse_java_integer(text, bits=64)


@given(st.floats(allow_nan=False))
def test_a_written_number_is_read_back_bit_by_bit(number: float) -> None:
    again = parse_java_double(java_double_text(number))
    assert struct.pack(">d", again) == struct.pack(">d", number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (-1e-323, "-9.9E-324"),
        (2e23, "2.0E23"),
        (math.inf, "Infinity"),
    ],
)
def test_numbers_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert java_double_text(number) == text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("foo", "1", "Unknown topic config name: foo"),
        (
            "segment.bytes",
            "x",
            "Invalid value x for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "segment.bytes",
            "1",
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        pytest.param(
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more "
            "than 1",
        ),
        pytest.param(
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or "
            "false",
        ),
        pytest.param(
            "cleanup.policy",
            "shred",
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, "
            "delete",
        ),
        pytest.param(
            "compression.type",
            "rar",
            "Invalid value rar for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        pytest.param(
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage.",
        ),
    ],
)
def test_a_topics_bad_value_is_refused_in_kafkas_words(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfigError) as refusal:
        validate_topic_configs({name: text}, existing={}, defaults=topic_defaults({}))
    assert refusal.value.message == message
