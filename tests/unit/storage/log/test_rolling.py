"""When a segment ends by its age: by timestamps or the wall clock, and earlier by a jitter."""

from dataclasses import replace

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.local_logs import CONFIG, NEW, loaded

WEEK = replace(CONFIG, segment_bytes=10_000, segment_ms=1_000)


@pytest.mark.parametrize("jitter_ms", [0, 300])
def test_a_segment_without_timestamps_ends_by_the_wall_clock(jitter_ms: int) -> None:
    log = loaded(FaultyFiles(), NEW, WEEK).log
    log.time_rolls(lambda: jitter_ms, now_ms=5_000)
    end_ms = 6_000 - jitter_ms
    for offset, now_ms in enumerate((5_000, end_ms, end_ms + 1, end_ms + 2)):
        log.append(make_batch(offset, timestamp=-1), now_ms=now_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


@pytest.mark.parametrize("jitter_ms", [0, 300])
def test_a_segment_with_timestamps_ends_by_these(jitter_ms: int) -> None:
    log = loaded(FaultyFiles(), NEW, WEEK).log
    log.time_rolls(lambda: jitter_ms, now_ms=5_000)
    for offset, timestamp in enumerate((50, 1_050 - jitter_ms, 1_051 - jitter_ms)):
        log.append(make_batch(offset, timestamp=timestamp), now_ms=10**9)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_the_age_is_that_of_the_first_batch_also_where_it_has_no_timestamp() -> None:
    log = loaded(FaultyFiles(), NEW, WEEK).log
    log.time_rolls(lambda: 0, now_ms=0)
    for offset, timestamp in enumerate((-1, 50, 9_000)):
        log.append(make_batch(offset, timestamp=timestamp), now_ms=10)
    assert [segment.base_offset for segment in log.segments] == [0]
