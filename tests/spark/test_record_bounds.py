"""The places of records of many batches are those that a reader of one batch finds."""

from random import Random

import numpy as np
import pytest

from kvorum.spark.columnar.record_places import Bounds, find_bounds
from kvorum.wire.records import RecordData, build_batch
from kvorum.wire.records.batch import HEADER_BYTES

PADDING = bytes(16)


def bodies(random: Random, counts: list[int]) -> list[bytes]:
    """Return the records of batches, some of which are so long that a length takes three bytes."""
    sizes = (0, 1, 50, 60, 200, 9000)
    return [
        build_batch(
            [RecordData(key=None, value=bytes(random.choice(sizes))) for _ in range(count)]
        )[HEADER_BYTES:]
        for count in counts
    ]


def found(parts: list[bytes], counts: list[int]) -> Bounds | None:
    sizes = np.array([len(part) for part in parts], np.int64)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    return find_bounds(b"".join((*parts, PADDING)), starts, ends, np.array(counts, np.int64))


def one_by_one(parts: list[bytes]) -> list[tuple[int, int]]:
    """Return the bounds of all records, read by a loop that knows nothing of other batches."""
    places: list[tuple[int, int]] = []
    base = 0
    for part in parts:
        pos = 0
        while pos < len(part):
            length = shift = 0
            while True:
                byte = part[pos]
                length |= (byte & 0x7F) << shift
                shift, pos = shift + 7, pos + 1
                if byte < 0x80:
                    break
            places.append((base + pos, base + pos + (length >> 1)))
            pos += length >> 1
        base += len(part)
    return places


@pytest.mark.parametrize("batches", [1, 60, 255, 256, 600])
def test_records_of_few_and_many_batches_of_all_lengths_are_found(batches: int) -> None:
    random = Random(batches)
    counts = [random.choice((1, 2, 7, 90)) for _ in range(batches)]
    parts = bodies(random, counts)
    bounds = found(parts, counts)
    assert bounds is not None
    pairs = list(zip(bounds.starts.tolist(), bounds.ends.tolist(), strict=True))
    assert pairs == one_by_one(parts)


def test_a_batch_without_records_has_no_bounds() -> None:
    parts = bodies(Random(1), [2] * 300)
    bounds = found([*parts[:3], b"", *parts[3:]], [2, 2, 2, 0, *[2] * 297])
    assert bounds is not None
    assert list(zip(bounds.starts.tolist(), bounds.ends.tolist(), strict=True)) == one_by_one(parts)


@pytest.mark.parametrize("batches", [2, 400])
@pytest.mark.parametrize("change", [-1, 1, 2**31 - 10])
def test_a_number_of_records_that_does_not_fit_is_refused(batches: int, change: int) -> None:
    counts = [3] * batches
    parts = bodies(Random(2), counts)
    assert found(parts, [*counts[:-1], 3 + change]) is None
    assert found(parts, [3 + change, *counts[1:]]) is None


@pytest.mark.parametrize("batches", [2, 400])
def test_lengths_that_lead_elsewhere_are_refused(batches: int) -> None:
    counts = [3] * batches
    body = build_batch([RecordData(key=None, value=bytes(50))] * 3)[HEADER_BYTES:]
    parts = [body] * batches
    # Odd is negative; the longer one leads into the next batch.
    for wrong in (b"\x01", b"\x7e", b"\xff\xff\xff\xff\xff"):
        changed = wrong + parts[1][len(wrong) :]
        assert found([parts[0], changed, *parts[2:]], counts) is None


@pytest.mark.parametrize("batches", [2, 400])
def test_a_negative_length_is_refused_even_if_it_leads_to_the_end(batches: int) -> None:
    # One byte; then back by two, to that byte; then on from it to the end.
    body = bytes((1 << 1, 8 << 1, (2 << 1) - 1)) + bytes(7)
    assert found([body] * batches, [3] * batches) is None
    # Without its sign this one fits.
    assert found([b"\x03\x00"] * batches, [1] * batches) is None
