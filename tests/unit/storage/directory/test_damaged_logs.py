"""A log that is damaged where it was durable: the start fails, or the log is set aside."""

from pathlib import Path
from random import Random

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.topic_logs import CONFIG, NOW_MS, TOPIC_ID, append, log_in, sent, values_in

from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.names import LOG_SUFFIX, offset_name
from kvorum.storage.topic_partition import TopicPartition

ROOT = Path("/logs")
DAMAGED, SOUND = TopicPartition("topic", 0), TopicPartition("topic", 1)
KEY = r"kvorum\.damaged\.logs\.set\.aside=true"


def manager_of(*, sets_aside: bool) -> LogManager:
    return LogManager(
        LogManagerSettings(sets_damaged_logs_aside=sets_aside),
        config_of=lambda _: CONFIG,
        random=Random(1),
    )


def start(manager: LogManager, files: FaultyFiles, *, is_fetchable: bool) -> None:
    files.make_directory(ROOT)
    hosted = {DAMAGED: TOPIC_ID, SOUND: TOPIC_ID}
    manager.startup(
        [LogDirectory(ROOT, bytes(16), files, was_clean=False)],
        hosted.get,
        now_ms=NOW_MS,
        is_fetchable=lambda _: is_fetchable,
    )


@pytest.fixture
def files() -> FaultyFiles:
    """The files of two logs after a crash; the first one has lost a bit that was durable."""
    files = FaultyFiles()
    manager = manager_of(sets_aside=False)
    start(manager, files, is_fetchable=False)
    for partition in (DAMAGED, SOUND):
        log = manager.get_or_create_log(partition, TOPIC_ID, directory_id=None, now_ms=NOW_MS)
        append(log, sent(b"value"))
        log.local_log.flush()
    manager.checkpoint_recovery_points()
    manager.abandon()
    files.names[ROOT / "topic-0" / offset_name(0, LOG_SUFFIX)].content[-1] ^= 1
    return files


def test_a_damaged_log_that_can_be_fetched_is_kept_aside_and_fetched_again(
    files: FaultyFiles,
) -> None:
    damaged = bytes(files.names[ROOT / "topic-0" / offset_name(0, LOG_SUFFIX)].content)
    manager = manager_of(sets_aside=True)
    start(manager, files, is_fetchable=True)
    assert manager.get_log(DAMAGED) is None
    assert values_in(log_in(manager, SOUND)) == [b"value"]
    (aside,) = [name for name in files.list_directories(ROOT) if name.endswith("-stray")]
    assert bytes(files.names[ROOT / aside / offset_name(0, LOG_SUFFIX)].content) == damaged
    log = manager.get_or_create_log(DAMAGED, TOPIC_ID, directory_id=None, now_ms=NOW_MS).local_log
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 0, 0)


def test_the_error_says_that_the_log_can_be_set_aside(files: FaultyFiles) -> None:
    manager = manager_of(sets_aside=False)
    with pytest.raises(CorruptLogError, match=KEY) as caught:
        start(manager, files, is_fetchable=True)
    assert caught.value.file == ROOT / "topic-0" / offset_name(0, LOG_SUFFIX)
    assert caught.value.offset is not None


@pytest.mark.parametrize("sets_aside", [True, False])
def test_a_damaged_log_that_others_may_need_stops_the_start(
    files: FaultyFiles, sets_aside: bool
) -> None:
    with pytest.raises(CorruptLogError) as caught:
        start(manager_of(sets_aside=sets_aside), files, is_fetchable=False)
    assert "set.aside" not in str(caught.value)
    assert "topic-0" in files.list_directories(ROOT)
