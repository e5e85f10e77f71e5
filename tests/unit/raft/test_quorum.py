"""Majorities and the high watermark, for every small quorum."""

from itertools import combinations_with_replacement, product

import pytest

from kvorum.raft.quorum import advanced_high_watermark, majority_of, majority_offset


@pytest.mark.parametrize("count", range(1, 10))
def test_a_majority_is_the_fewest_that_are_more_than_half(count: int) -> None:
    assert majority_of(count) == min(size for size in range(count + 1) if 2 * size > count)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_majority_offset_is_the_highest_that_more_than_half_have(size: int) -> None:
    for ends in combinations_with_replacement(range(5), size):
        expected = max(
            offset for offset in range(5) if 2 * sum(end >= offset for end in ends) > size
        )
        assert majority_offset(ends) == expected


def test_an_empty_set_has_no_majority() -> None:
    with pytest.raises(ValueError, match="no voters"):
        majority_offset([])
    assert advanced_high_watermark(current=3, end_offsets=[], epoch_start_offset=0) is None


def test_the_high_watermark_only_rises_and_only_past_the_epochs_start() -> None:
    for ends in product(range(5), repeat=3):
        for current in (None, 0, 1, 2, 3, 4):
            for start in range(5):
                advanced = advanced_high_watermark(
                    current=current, end_offsets=ends, epoch_start_offset=start
                )
                offset = majority_offset(ends)
                if advanced is None:
                    assert offset <= start or (current is not None and offset <= current)
                else:
                    assert advanced == offset > start
                    assert current is None or advanced > current
