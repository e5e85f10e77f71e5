"""Work on logs again and again: files, idle producers, logs that compaction leaves alone."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.waiting import wait_for_async
from tests.unit.storage.local_logs import CHANGES
from tests.unit.storage.topic_logs import (
    CONFIG,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch_of,
    managed,
    sent,
    transactional,
)

from kvorum.broker.topic_log_configs import PRODUCER_EXPIRATION, TopicConfigs
from kvorum.broker.views.config_layers import config_layers
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.broker_logs import BrokerLogs, CleanerThread
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.clock import SystemClock
from kvorum.node.config.settings import CleanerSettings, LogSettings
from kvorum.node.coroutines import Task
from kvorum.node.tasks import run
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT
from kvorum.storage.log.verification_state import VerificationGuard
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.records import RecordData

HERE = Path("/data")
NEVER_MS = 1_000_000
EXPIRATION_MS = 1_000
IDLE, IN_TRANSACTION, VERIFIED = 6, 7, 8
SETTINGS = LogSettings(
    high_watermark_checkpoint_ms=NEVER_MS,
    recovery_point_checkpoint_ms=NEVER_MS,
    retention_check_ms=NEVER_MS,
    producer_expiration_check_ms=NEVER_MS,
    cleaner=CleanerSettings(is_enabled=False, backoff_ms=1, dedupe_buffer_bytes=1, load_factor=0.9),
)
LAST_SEGMENTS = replace(
    CONFIG,
    segments=replace(CONFIG.segments, is_flushed_on_roll=False),
    cleanup=CleanupConfig(retention_ms=-1, retention_bytes=700),
)
LEAVING, STAYING = TopicPartition("leaving", 0), TopicPartition("staying", 0)
CLEANING = CleanerSettings(backoff_ms=1, dedupe_buffer_bytes=100_000, load_factor=0.9)
COMPACTED = replace(CONFIG, cleanup=CleanupConfig(is_compacted=True, is_deleted=False))


@dataclass(slots=True)
class WatchedFiles(FaultyFiles):
    """Files that note which of their changes the event loop waits for."""

    is_in_thread: bool = False
    in_loop: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def count(self, operation: str, path: Path) -> None:
        if operation in CHANGES and not self.is_in_thread:
            self.in_loop.append((operation, path.name))
        FaultyFiles.count(self, operation, path)


class Broker:
    """The logs of a broker on a simulated runtime, in which one partition has records."""

    def __init__(self, settings: LogSettings = SETTINGS) -> None:
        self.files = WatchedFiles()
        self.image = MetadataImage()
        self._events = Events()
        clock = NodeClock(self._events)
        self.wall_ms = clock.wall_ms
        runtime = SimulatedRuntime(
            self._events, clock, Random(1), turn=self.turn, do_work=self.do_work
        )
        broker = ThisBroker(
            id=1, epoch=lambda: 1, image=lambda: self.image, runtime=runtime, on_failure=self._fail
        )
        configs = TopicConfigs(broker.id, {})
        manager = LogManager(
            LogManagerSettings(),
            config_of=lambda topic: LAST_SEGMENTS if topic == PARTITION.topic else COMPACTED,
            producer_expiration_ms=lambda: configs.producer_expiration_ms(self.image),
            random=Random(1),
        )
        self.logs = BrokerLogs(broker, manager, settings, deletion_check_ms=10)
        directory = LogDirectory(HERE, bytes(16), self.files, was_clean=True)
        Task(self.logs.startup([directory], has_offline_log_dirs=False), lambda _: None)
        self.run_for(5)
        self.log = self._filled(manager)
        self.files.in_loop.clear()

    def _filled(self, manager: LogManager) -> UnifiedLog:
        log = manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=None, now_ms=NOW_MS)
        for _ in range(40):
            append(log, sent(b"value"))
        log.update_high_watermark(40)
        assert len(log.local_log.segments) > 3
        return log

    def set_producer_expiration(self, text: str) -> None:
        """Give all brokers of the cluster another ``producer.id.expiration.ms``."""
        record = ConfigRecord(ResourceType.BROKER, "", PRODUCER_EXPIRATION, text)
        self.image = self.image.apply(record, 0, 0)

    def turn(self, callback: Callable[[], None]) -> None:
        callback()

    def do_work(self, work: Callable[[], object]) -> None:
        self.files.is_in_thread = True
        try:
            work()
        finally:
            self.files.is_in_thread = False

    def run_for(self, duration_ms: float) -> None:
        end_ms = self._events.now_ms + duration_ms
        while (callback := self._events.take_next(end_ms)) is not None:
            callback()

    def _fail(self, error: Exception) -> None:
        raise error


def logs_in(files: FaultyFiles) -> list[str]:
    return [path.name for path in files.names if ".log" in path.name]


def test_files_that_retention_deletes_go_in_a_thread() -> None:
    broker = Broker(replace(SETTINGS, retention_check_ms=10))
    count = len(logs_in(broker.files))
    broker.logs.begin_schedule()
    broker.run_for(100)
    assert broker.log.local_log.size_bytes <= 700 + CONFIG.segments.segment_bytes
    assert len(logs_in(broker.files)) == len(broker.log.local_log.segments) < count
    assert broker.files.in_loop == []


def test_files_of_records_that_a_client_deletes_go_in_a_thread() -> None:
    broker = Broker()
    broker.logs.begin_schedule()
    broker.log.delete_records(39, now_ms=NOW_MS)
    broker.run_for(100)
    assert len(logs_in(broker.files)) == 1
    assert broker.files.in_loop == []


def test_a_new_leader_epoch_is_stored_in_a_thread() -> None:
    broker = Broker()
    broker.logs.begin_schedule()
    # One that begins a segment.
    append(broker.log, sent(b"value"))
    broker.files.in_loop.clear()
    broker.log.local_log.assign_epoch(7)
    broker.log.append_as_leader(sent(b"value"), leader_epoch=7, now_ms=NOW_MS)
    assert {operation for operation, _ in broker.files.in_loop} == {"write"}
    broker.files.in_loop.clear()
    broker.run_for(100)
    stored = broker.files.names[broker.log.local_log.directory / LEADER_EPOCH_CHECKPOINT]
    assert bytes(stored.content) == b"0\n2\n0 0\n7 41\n"
    assert broker.files.in_loop == []


def broker_that_looks_for_idle_producers() -> Broker:
    broker = Broker(replace(SETTINGS, producer_expiration_check_ms=10))
    append(broker.log, sent(b"idle", producer=IDLE, sequence=0, time_ms=broker.wall_ms()))
    broker.logs.begin_schedule()
    return broker


def test_an_idle_producer_is_forgotten_in_its_time_unless_its_transaction_is_open() -> None:
    broker = broker_that_looks_for_idle_producers()
    broker.set_producer_expiration(str(EXPIRATION_MS))
    append(broker.log, transactional(b"open", sequence=0))
    broker.run_for(EXPIRATION_MS - 20)
    assert broker.log.producers.entries.keys() == {IDLE, IN_TRANSACTION}
    broker.run_for(40)
    assert broker.log.producers.entries.keys() == {IN_TRANSACTION}


def test_a_verification_without_an_end_is_forgotten_in_its_time() -> None:
    broker = broker_that_looks_for_idle_producers()
    broker.set_producer_expiration(str(EXPIRATION_MS))

    def guard() -> VerificationGuard | None:
        return broker.log.producers.maybe_start_transaction_verification(
            VERIFIED, sequence=0, epoch=0, supports_epoch_bump=True, now_ms=broker.wall_ms()
        )

    first = guard()
    broker.run_for(EXPIRATION_MS - 20)
    assert guard() is first
    broker.run_for(40)
    assert guard() is not first


def test_a_changed_time_of_idle_producers_counts_from_the_next_check_on() -> None:
    broker = broker_that_looks_for_idle_producers()
    broker.run_for(EXPIRATION_MS + 20)
    assert broker.log.producers.entries.keys() == {IDLE}
    broker.set_producer_expiration(str(EXPIRATION_MS))
    broker.run_for(20)
    assert not broker.log.producers.entries


def test_the_producers_of_a_log_are_left_alone_while_it_is_truncated() -> None:
    """The thread that truncates reads them again."""
    broker = broker_that_looks_for_idle_producers()
    broker.set_producer_expiration(str(EXPIRATION_MS))
    broker.log.local_log.is_truncating = True
    broker.run_for(EXPIRATION_MS + 20)
    assert broker.log.producers.entries.keys() == {IDLE}
    broker.log.local_log.is_truncating = False
    broker.run_for(20)
    assert not broker.log.producers.entries


def fill(manager: LogManager, partition: TopicPartition, count: int) -> None:
    log = manager.get_or_create_log(partition, TOPIC_ID, directory_id=None, now_ms=NOW_MS)
    for number in range(count):
        append(log, batch_of(RecordData(b"%d" % number, b"key", NOW_MS)))
    log.update_high_watermark(log.log_end_offset)


async def wait_until_clean(directory: LogDirectory, partition: TopicPartition) -> None:
    """Wait for a file that is written in another thread."""
    checkpoint = directory.cleaner_checkpoint
    await wait_for_async(
        lambda: partition in checkpoint.read(), f"{partition} is clean", otherwise=checkpoint.read
    )


async def test_a_deleted_partition_leaves_the_truncation_of_another_one_to_the_next_round(
    tmp_path: Path,
) -> None:
    """Else what follows it counts as clean: a key whose value was deleted would have it again."""
    directory = LogDirectory(tmp_path, bytes(16), RealFileSystem(), was_clean=True)
    manager = managed([directory], lambda _: TOPIC_ID, config=COMPACTED)
    fill(manager, LEAVING, 1)
    fill(manager, STAYING, 30)
    runtime = AsyncioRuntime(SystemClock(), thread_name="cleaner")
    cleaner = CleanerThread(replace(CLEANING, backoff_ms=NEVER_MS), manager, runtime)
    cleaner.startup()
    await wait_until_clean(directory, STAYING)
    await run(cleaner.abort_cleaning([LEAVING]))
    directory.logs[STAYING].truncate_to(10, now_ms=NOW_MS)
    manager.async_delete([LEAVING], now_ms=NOW_MS)
    await run(cleaner.forget([LEAVING]))
    assert directory.logs[STAYING].local_log.take_truncation() == 10
    await run(cleaner.shutdown())
    runtime.close()
    manager.shutdown(broker_epoch=1)


async def test_a_partition_is_left_alone_until_its_deletion_is_done(tmp_path: Path) -> None:
    """Its files are renamed in another thread, where a pass that looked for them would fail."""
    directory = LogDirectory(tmp_path, bytes(16), RealFileSystem(), was_clean=True)
    manager = managed([directory], lambda _: TOPIC_ID, config=COMPACTED)
    fill(manager, LEAVING, 60)
    fill(manager, STAYING, 30)
    runtime = AsyncioRuntime(SystemClock(), thread_name="cleaner")
    cleaner = CleanerThread(CLEANING, manager, runtime)
    cleaner.startup()
    await run(cleaner.abort_cleaning([LEAVING]))
    await wait_until_clean(directory, STAYING)
    assert LEAVING not in directory.cleaner_checkpoint.read()
    manager.async_delete([LEAVING], now_ms=NOW_MS)
    await run(cleaner.forget([LEAVING]))
    fill(manager, LEAVING, 60)
    await wait_until_clean(directory, LEAVING)
    await run(cleaner.shutdown())
    runtime.close()
    manager.shutdown(broker_epoch=1)


class CleanedBroker(Broker):
    """A broker whose cleaner has compacted a log, and rests from then on."""

    def __init__(self) -> None:
        super().__init__(replace(SETTINGS, cleaner=replace(CLEANING, backoff_ms=NEVER_MS)))
        fill(self.logs.manager, STAYING, 60)
        self.logs.begin_schedule()
        assert self.is_soon_clean(STAYING)

    def is_clean_after_writes_to(self, partition: TopicPartition) -> bool:
        """Write to a compacted log, and return whether it is clean soon."""
        fill(self.logs.manager, partition, 60)
        return self.is_soon_clean(partition)

    def is_soon_clean(self, partition: TopicPartition) -> bool:
        self.run_for(100)
        return partition in self.logs.manager.directories[0].cleaner_checkpoint.read()

    def change(self, **values: str) -> None:
        """Give all brokers of the cluster dynamic values; an underscore stands for a dot."""
        for name, value in values.items():
            record = ConfigRecord(ResourceType.BROKER, "", name.replace("_", "."), value or None)
            self.image = self.image.apply(record, 0, 0)
        self.logs.reconfigure(config_layers(self.image.configs, node_id=1, texts={}))
        self.run_for(100)


def test_a_cleaner_that_rests_looks_at_once_with_its_new_settings() -> None:
    broker = CleanedBroker()
    assert not broker.is_clean_after_writes_to(LEAVING)
    broker.change(log_cleaner_dedupe_buffer_size="50000")
    assert broker.is_soon_clean(LEAVING)


def test_a_dynamic_rest_of_the_cleaner_counts_until_it_is_taken_back() -> None:
    broker = CleanedBroker()
    broker.change(log_cleaner_backoff_ms="20")
    assert broker.is_clean_after_writes_to(LEAVING)
    broker.change(log_cleaner_backoff_ms="")
    assert not broker.is_clean_after_writes_to(TopicPartition("another", 0))


def test_the_cleaner_leaves_a_failed_directory_alone() -> None:
    broker = CleanedBroker()
    broker.change(log_cleaner_backoff_ms="20")
    broker.logs.manager.handle_log_dir_failure(broker.logs.manager.directories[0])
    broker.files.calls.clear()
    broker.run_for(100)
    assert broker.files.calls == []


def test_a_memory_of_the_cleaner_that_takes_no_key_is_logged_and_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = CleanedBroker()
    broker.change(log_cleaner_io_buffer_load_factor="0", log_cleaner_backoff_ms="20")
    assert "The settings of compaction stay as they were" in caplog.text
    assert not broker.is_clean_after_writes_to(LEAVING)
    broker.change(log_cleaner_io_buffer_load_factor="")
    assert broker.is_soon_clean(LEAVING)


def test_a_dynamic_delay_counts_for_the_files_of_partitions_that_are_deleted_already() -> None:
    broker = CleanedBroker()
    broker.logs.manager.async_delete([STAYING], now_ms=broker.wall_ms())
    broker.run_for(100)
    assert any("-delete" in str(path) for path in broker.files.names)
    broker.change(log_segment_delete_delay_ms="50")
    assert not any("-delete" in str(path) for path in broker.files.names)


def test_a_dynamic_number_of_threads_counts_when_logs_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = CleanedBroker()
    numbers: list[int] = []

    def note(_: LogDirectory, *, thread_count: int) -> bool:
        numbers.append(thread_count)
        return False

    monkeypatch.setattr(LogDirectory, "close", note)
    broker.change(num_recovery_threads_per_data_dir="4")
    broker.logs.manager.shutdown(broker_epoch=1)
    assert numbers == [4]
