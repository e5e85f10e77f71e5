"""Uuids in the text form that Kafka prints."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.wire.uuid_text import (
    METADATA_TOPIC_ID,
    RESERVED_UUIDS,
    ZERO_UUID,
    random_uuid,
    uuid_from_text,
    uuid_to_text,
)


@given(st.binary(min_size=16, max_size=16))
def test_text_and_back(value: bytes) -> None:
    text = uuid_to_text(value)
    assert len(text) == 22
    assert uuid_from_text(text) == value


def test_the_uuids_that_kafka_reserves() -> None:
    assert uuid_to_text(ZERO_UUID) == "A" * 22
    assert uuid_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert {ZERO_UUID, METADATA_TOPIC_ID} == RESERVED_UUIDS


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 25, "*" * 22, "\u00e9" * 22]
)
def test_anything_that_is_not_a_uuid(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        uuid_from_text(text)


@pytest.mark.parametrize("length", [0, 15, 17])
def test_bytes_of_the_wrong_length(length: int) -> None:
    with pytest.raises(ValueError, match=f"a uuid has 16 bytes, not {length}"):
        uuid_to_text(bytes(length))


def test_drawn_uuids_are_version_4_and_print_without_a_leading_dash() -> None:
    random = Random(1)
    drawn = [random_uuid(random) for _ in range(2000)]
    assert len(set(drawn)) == len(drawn)
    assert {value[6] >> 4 for value in drawn} == {4}
    assert {value[8] >> 6 for value in drawn} == {2}
    assert not any(uuid_to_text(value).startswith("-") for value in drawn)


def test_an_undecodable_text_is_complained_of_in_javas_words() -> None:
    with pytest.raises(ValueError, match=r"^Illegal base64 character 21$"):
        uuid_from_text("A!")
