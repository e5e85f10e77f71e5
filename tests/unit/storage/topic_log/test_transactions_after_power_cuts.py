"""Transactions and producers of a log whose machine has lost power."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage import topic_logs
from tests.unit.storage.topic_logs import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    abort_marker,
    append,
    managed,
    transactional,
)

from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.names import PRODUCER_SNAPSHOT_SUFFIX, parse_offset_name
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.records import read_batches

ROOT = Path("/logs")
DIRECTORY_ID = bytes([1]) * 16
CONFIG = replace(
    topic_logs.CONFIG, segments=replace(topic_logs.CONFIG.segments, is_flushed_on_roll=False)
)


def opened(files: FaultyFiles) -> UnifiedLog:
    files.make_directory(ROOT)
    directory = LogDirectory(ROOT, DIRECTORY_ID, files, was_clean=False)
    manager = managed([directory], {PARTITION: TOPIC_ID}.get, config=CONFIG)
    return manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=DIRECTORY_ID, now_ms=NOW_MS)


def abort(log: UnifiedLog) -> None:
    marker = abort_marker()
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def aborted_in_records(log: UnifiedLog) -> list[tuple[int, int]]:
    """Return the first offset and the marker's of each aborted transaction, from the records."""
    local = log.local_log
    found: list[tuple[int, int]] = []
    first: int | None = None
    offset = 0
    while offset < local.log_end_offset:
        for batch in read_batches(local.read(offset, 1 << 20, end_offset=local.log_end_offset)):
            offset = batch.next_offset
            if not batch.is_control:
                first = batch.base_offset if first is None else first
            elif first is not None:
                found.append((first, batch.base_offset))
                first = None
    return found


def snapshot_offsets(files: FaultyFiles) -> list[int]:
    parsed = [parse_offset_name(name) for name in files.list_names(ROOT / "topic-0")]
    return [found[0] for found in parsed if found and found[1] == PRODUCER_SNAPSHOT_SUFFIX]


@pytest.mark.parametrize("seed", range(40))
def test_a_log_has_the_aborted_transactions_and_producers_of_its_records(seed: int) -> None:
    random = Random(seed)
    files = FaultyFiles()
    log = opened(files)
    sequence = 0
    for _ in range(random.randint(2, 8)):
        for _ in range(random.randint(1, 3)):
            append(log, transactional(b"x" * 40, sequence=sequence))
            sequence += 1
        abort(log)
        if random.random() < 0.2:
            log.local_log.flush()
    left = files.after_power_cut(random)
    again = opened(left)
    local = again.local_log
    found = again.aborted_transactions(0, local.log_end_offset)
    assert [(one.first_offset, one.last_offset) for one in found] == aborted_in_records(again)
    assert [offset for offset in snapshot_offsets(left) if offset > local.log_end_offset] == []
    # The log goes on, where a marker was that is lost.
    entry = again.producers.entries.get(7)
    following = 0 if entry is None else entry.last_sequence + 1
    for number in range(3):
        append(again, transactional(b"y", sequence=following + number))
        abort(again)
    found = again.aborted_transactions(0, local.log_end_offset)
    assert [(one.first_offset, one.last_offset) for one in found] == aborted_in_records(again)
