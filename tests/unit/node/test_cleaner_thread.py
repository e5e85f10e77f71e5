"""Logs that the thread for compaction leaves alone."""

from dataclasses import replace
from pathlib import Path

from tests.support.waiting import wait_for_async
from tests.unit.storage.topic_logs import CONFIG, NOW_MS, TOPIC_ID, append, batch_of, managed

from kvorum.node.asyncio_bridge import run
from kvorum.node.broker.cleaner_thread import CleanerThread
from kvorum.node.clock import SystemClock
from kvorum.node.config.settings import CleanerSettings
from kvorum.node.event_loop import AsyncioRuntime
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager
from kvorum.storage.files import RealFileSystem
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.records import RecordData

LEAVING, STAYING = TopicPartition("leaving", 0), TopicPartition("staying", 0)
SETTINGS = CleanerSettings(backoff_ms=1, dedupe_buffer_bytes=100_000, load_factor=0.9)
COMPACTED = replace(CONFIG, cleanup=CleanupConfig(is_compacted=True, is_deleted=False))


def fill(manager: LogManager, partition: TopicPartition, count: int) -> None:
    log = manager.get_or_create_log(partition, TOPIC_ID, directory_id=None, now_ms=NOW_MS)
    for number in range(count):
        append(log, batch_of(RecordData(b"%d" % number, b"key", NOW_MS)))
    log.update_high_watermark(log.local_log.log_end_offset)


async def wait_until_clean(directory: LogDirectory, partition: TopicPartition) -> None:
    """Wait for a file that is written in another thread."""
    checkpoint = directory.cleaner_checkpoint
    await wait_for_async(
        lambda: partition in checkpoint.read(), f"{partition} is clean", otherwise=checkpoint.read
    )


async def test_a_partition_is_left_alone_until_its_deletion_is_done(tmp_path: Path) -> None:
    """Its files are renamed in another thread, where a pass that looked for them would fail."""
    directory = LogDirectory(tmp_path, bytes(16), RealFileSystem(), was_clean=True)
    manager = managed([directory], lambda _: TOPIC_ID, config=COMPACTED)
    fill(manager, LEAVING, 60)
    fill(manager, STAYING, 30)
    runtime = AsyncioRuntime(SystemClock(), thread_name="cleaner")
    cleaner = CleanerThread(SETTINGS, manager, runtime)
    cleaner.startup()
    await run(cleaner.abort_cleaning(LEAVING))
    await wait_until_clean(directory, STAYING)
    assert LEAVING not in directory.cleaner_checkpoint.read()
    manager.async_delete(LEAVING, now_ms=NOW_MS)
    await run(cleaner.forget(LEAVING))
    fill(manager, LEAVING, 60)
    await wait_until_clean(directory, LEAVING)
    await run(cleaner.shutdown())
    runtime.close()
    manager.shutdown(broker_epoch=1)
