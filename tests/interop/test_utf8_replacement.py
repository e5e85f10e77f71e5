"""Bytes that are no UTF-8, read by Kafka's own code and by ours: the same characters."""

from itertools import product
from random import Random
from typing import Final

from tests.support.golden_data import READ_BY_JAVA
from tests.support.kafka.java import Java

from kvorum.wire.primitives import decode_with_replacement

# One of each class of bytes that a reader tells apart, at its borders.
BORDERS: Final = bytes.fromhex(
    "41 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff"
)
RANDOM_STRINGS: Final = 5_000


def ill_formed() -> list[bytes]:
    """Return every short sequence of border bytes, and long random ones of them."""
    random = Random(9)
    found = [bytes(chosen) for size in (1, 2, 3) for chosen in product(BORDERS, repeat=size)]
    found += [
        bytes(random.choices(BORDERS, k=random.randrange(4, 12))) for _ in range(RANDOM_STRINGS)
    ]
    return [*READ_BY_JAVA, *found]


def test_kafka_reads_the_same_characters(java: Java) -> None:
    given = ill_formed()
    answers = java.answers("Utf8Replacement", asked=(raw.hex() for raw in given))
    read = [bytes.fromhex(line).decode("utf-16-be") for line in answers]
    assert len(read) == len(given)
    differing = [
        (raw.hex(), theirs, decode_with_replacement(raw))
        for raw, theirs in zip(given, read, strict=True)
        if decode_with_replacement(raw) != theirs
    ]
    assert differing == []
