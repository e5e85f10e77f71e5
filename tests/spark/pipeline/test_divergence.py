"""Differences of two replicas, by the headers of their batches."""

from random import Random

import pytest

from kvorum.spark.pipeline.divergence import BatchPlace, Difference, DifferenceKind, differences


def log(*batches: tuple[int, int, int]) -> list[BatchPlace]:
    """Return batches of (first offset, records, epoch)."""
    return [
        BatchPlace(base, base + count, epoch, crc=epoch * 1000 + base, size=100)
        for base, count, epoch in batches
    ]


SAME = log((0, 2, 1), (2, 3, 1), (5, 1, 2), (6, 4, 2))


OTHERS = [SAME[0], SAME[1]._replace(epoch=3), SAME[2]._replace(crc=1), SAME[3]]


@pytest.mark.parametrize(
    ("replica", "expected"),
    [
        (SAME, []),
        (SAME[2:], []),
        (SAME[:2], [("behind", 5, 10, False)]),
        ([*SAME, *log((10, 2, 2), (12, 1, 2))], [("beyond", 10, 13, True)]),
        ([SAME[0], *SAME[2:]], [("missing", 2, 5, True)]),
        (OTHERS, [("other_epoch", 2, 5, True), ("other_content", 5, 6, True)]),
        ([*SAME[:1], *log((2, 4, 1)), SAME[3]], [("other_content", 2, 6, True)]),
    ],
    ids=["equal", "a later begin", "shorter", "longer", "a batch less", "others", "other sizes"],
)
def test_differences_are_named(
    replica: list[BatchPlace], expected: list[tuple[str, int, int, bool]]
) -> None:
    assert [
        (each.kind.value, each.from_offset, each.to_offset, each.is_divergence)
        for each in differences(SAME, replica)
    ] == expected


def test_an_extra_batch_has_its_epoch_and_none_of_the_reference() -> None:
    assert list(differences([SAME[0], *SAME[2:]], SAME)) == [
        Difference(DifferenceKind.EXTRA, 2, 5, epoch=1, reference_epoch=None)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_place_is_reported_exactly_where_the_logs_differ(seed: int) -> None:
    random = Random(seed)
    reference: list[BatchPlace] = []
    offset = 0
    for _ in range(30):
        reference += log((offset, random.randrange(1, 4), 1))
        offset = reference[-1].next_offset
    changed = set(random.sample(range(30), 5))
    gone = set(random.sample(range(1, 29), 4)) - changed
    replica = [
        each._replace(crc=7) if number in changed else each
        for number, each in enumerate(reference)
        if number not in gone
    ]
    reported: set[int] = set()
    for each in differences(reference, replica):
        reported.update(range(each.from_offset, each.to_offset))
    expected = {
        offset
        for number in changed | gone
        for offset in range(reference[number].base_offset, reference[number].next_offset)
    }
    assert reported == expected
