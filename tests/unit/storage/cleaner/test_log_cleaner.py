"""Which logs are cleaned, how far, and what keeps the cleaner off them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest
from tests.support.faulty_files import FaultyFiles, MemoryFile
from tests.unit.storage.local_logs import CONFIG, NEW, batches_in, loaded

from kvorum.storage.cleaner.batch_filter import LastRecord
from kvorum.storage.cleaner.cleaner import CleanedLog, Cleaner, LogCleaner
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.cleaner.log_cleaner_manager import HostedLog, LogCleanerManager, cleanable_part
from kvorum.storage.cleaner.offset_map import SLOT_BYTES, OffsetMap
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.errors import CorruptFileError, CorruptLogError, DiskError
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_loader import LogCheckpoint
from kvorum.storage.small_files.offset_checkpoint_file import OffsetCheckpointFile
from kvorum.storage.topic_log.segment_retention import delete_old_segments
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch

DATA: Final = Path("/data")
FILE: Final = DATA / "cleaner-offset-checkpoint"
ONE, TWO = TopicPartition("one", 0), TopicPartition("two", 3)
GAPS: Final = replace(CONFIG, segment_bytes=300, may_have_gaps=True)
COMPACT: Final = CleanupConfig(is_compacted=True, is_deleted=False, retention_ms=-1)
NOW: Final = 1_000_000


@dataclass
class Hosted:
    """A log as its owner has it."""

    log: LocalLog
    config: CleanupConfig
    last_stable_offset: int
    last_records: dict[int, LastRecord] = field(default_factory=dict[int, LastRecord])

    def shared(self) -> HostedLog:
        return HostedLog(
            log=SharedLog(self.log),
            config=self.config,
            high_watermark=self.last_stable_offset,
            last_stable_offset=self.last_stable_offset,
            truncated_to=self.log.take_truncation(),
            last_records=self.last_records,
        )


def hosted(
    files: FaultyFiles,
    partition: TopicPartition = ONE,
    *,
    count: int = 20,
    config: CleanupConfig = COMPACT,
    checkpoint: LogCheckpoint = NEW,
) -> Hosted:
    log = loaded(files, checkpoint, GAPS, DATA / str(partition)).log
    for offset in range(count):
        record = RecordData(b"%d" % offset, b"key %d" % (offset % 2), 1_000 + offset)
        options = BatchOptions(base_offset=offset, partition_leader_epoch=0)
        log.append(build_batch([record], options))
    return Hosted(log, config, count)


class Round:
    """A manager and a cleaner over some logs."""

    def __init__(self, files: FaultyFiles, *logs: tuple[TopicPartition, Hosted]) -> None:
        self.files = files
        self.logs = dict(logs)
        self.unusable = dict[TopicPartition, Hosted]()
        """Logs that no round may use for now, as while their disk is slow."""
        self.manager = LogCleanerManager(
            OffsetCheckpointFile(FILE, files, advice=""), lambda: {**self.logs, **self.unusable}
        )
        self.cleaner = LogCleaner(self.manager, OffsetMap(size_bytes=2400, load_factor=0.9), files)

    def clean(self) -> TopicPartition | None:
        done = self.clean_filthiest()
        return None if done is None else done.partition

    def clean_filthiest(self) -> CleanedLog | None:
        return self.cleaner.clean_filthiest(self.shared(), now_ms=NOW)

    def shared(self) -> dict[TopicPartition, HostedLog]:
        return {partition: log.shared() for partition, log in self.logs.items()}

    @property
    def checkpoint(self) -> str:
        return bytes(self.files.names[FILE].content).decode()


def offsets(log: Hosted) -> list[int]:
    batches = batches_in(log.log.segments[:-1])
    return [record.offset for batch in batches for record in batch.records()]


def test_the_filthiest_log_is_cleaned_first_and_noted_in_kafkas_format(files: FaultyFiles) -> None:
    small, large = hosted(files, ONE, count=13), hosted(files, TWO)
    OffsetCheckpointFile(FILE, files, advice="").write({ONE: small.log.segments[1].base_offset})
    work = Round(files, (ONE, small), (TWO, large))
    end = large.log.segments[-1].base_offset
    assert work.clean() == TWO
    assert work.manager.max_dirty_ratio == 1.0
    assert work.checkpoint == f"0\n2\none 0 {small.log.segments[1].base_offset}\ntwo 3 {end}\n"
    assert offsets(large) == [end - 2, end - 1]
    assert work.clean() == ONE
    assert work.clean() is None
    assert work.manager.cleaned_offsets() == {ONE: small.log.segments[-1].base_offset, TWO: end}


def test_a_log_that_is_not_used_for_now_is_clean_as_far_as_it_was(files: FaultyFiles) -> None:
    """It would be compacted from its start again."""
    one, two = hosted(files, ONE), hosted(files, TWO)
    work = Round(files, (ONE, one))
    assert work.clean() == ONE
    work.unusable[ONE] = work.logs.pop(ONE)
    work.logs[TWO] = two
    assert work.clean() == TWO
    end = one.log.segments[-1].base_offset
    assert work.manager.cleaned_offsets() == {ONE: end, TWO: two.log.segments[-1].base_offset}


def test_another_memory_for_keys_counts_from_the_next_pass_on(files: FaultyFiles) -> None:
    work = Round(files, (ONE, hosted(files, ONE)))
    work.cleaner.use(OffsetMap(size_bytes=2 * SLOT_BYTES, load_factor=0.9))
    done = work.clean_filthiest()
    assert done is not None
    assert done.end_offset == 1


def test_half_of_a_log_is_not_more_than_half(files: FaultyFiles) -> None:
    log = hosted(files, config=replace(COMPACT, min_cleanable_dirty_ratio=1.0))
    work = Round(files, (ONE, log))
    assert work.clean() is None
    work.logs[ONE] = replace(log, config=replace(log.config, min_cleanable_dirty_ratio=0.999))
    assert work.clean() == ONE


@pytest.mark.parametrize(
    ("checkpoint", "is_wrong"), [(3, True), (99, True), (5, False), (20, False)]
)
def test_a_checkpoint_outside_the_log_makes_all_of_it_dirty(
    files: FaultyFiles, checkpoint: int, *, is_wrong: bool
) -> None:
    log = hosted(files)
    log.log.increment_log_start_offset(5, now_ms=0)
    OffsetCheckpointFile(FILE, files, advice="").write({ONE: checkpoint, TWO: 7})
    work = Round(files, (ONE, log))
    part = cleanable_part(
        SharedLog(log.log), log.config, checkpoint=checkpoint, last_stable_offset=20, now_ms=NOW
    )
    assert part.is_checkpoint_wrong == is_wrong
    assert part.first_dirty_offset == (5 if is_wrong else checkpoint)
    work.manager.grab_filthiest(work.shared(), now_ms=NOW)
    # The file is rewritten at once, and loses what is not hosted any more.
    lines = ("1", "one 0 5") if is_wrong else ("2", f"one 0 {checkpoint}", "two 3 7")
    assert work.checkpoint == "\n".join(("0", *lines, ""))


def test_what_is_not_stable_is_not_cleaned(files: FaultyFiles) -> None:
    log = hosted(files)
    bases = [segment.base_offset for segment in log.log.segments]
    for stable in range(21):
        part = cleanable_part(
            SharedLog(log.log), COMPACT, checkpoint=None, last_stable_offset=stable, now_ms=NOW
        )
        assert part.first_uncleanable_offset == max(
            base for base in bases if base <= min(stable, bases[-1])
        )


def test_young_records_are_not_cleaned_and_old_ones_must_be(files: FaultyFiles) -> None:
    log = hosted(files)
    second = log.log.segments[1].base_offset
    young = replace(COMPACT, min_compaction_lag_ms=500)
    part = cleanable_part(
        SharedLog(log.log), young, checkpoint=None, last_stable_offset=20, now_ms=1_500 + second
    )
    assert part.first_uncleanable_offset == second
    late = replace(COMPACT, max_compaction_lag_ms=100, min_cleanable_dirty_ratio=1.0)
    for now_ms, overdue_ms in ((1_100, 0), (1_101, 1), (1_300, 200)):
        part = cleanable_part(
            SharedLog(log.log), late, checkpoint=None, last_stable_offset=20, now_ms=now_ms
        )
        assert part.overdue_ms == overdue_ms
        assert part.is_due(late) == (overdue_ms > 0)


def test_an_unexpected_error_in_one_log_leaves_the_others_to_be_compacted(
    files: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = hosted(files, ONE), hosted(files, TWO, count=9)
    work = Round(files, (ONE, bad), (TWO, good))
    with monkeypatch.context() as broken:
        broken.setattr(Cleaner, "clean", failing_with(IndexError("broken")))
        done = work.clean_filthiest()
    assert done is not None
    assert str(done.problem) == "broken"
    assert work.manager.uncleanable == {ONE}
    assert work.clean() == TWO


def failing_with(error: Exception) -> Callable[..., int]:
    def fail(*_: object) -> int:
        raise error

    return fail


def test_a_log_that_cannot_be_read_is_left_alone(files: FaultyFiles) -> None:
    bad, good = hosted(files, ONE), hosted(files, TWO, count=9)
    files.names[bad.log.segments[0].path].content[70] ^= 1
    work = Round(files, (ONE, bad), (TWO, good))
    done = work.clean_filthiest()
    assert done is not None
    assert isinstance(done.problem, CorruptLogError)
    assert work.manager.uncleanable == {ONE}
    assert work.clean() == TWO
    assert work.clean() is None
    work.manager.forget([ONE])
    assert work.manager.uncleanable == frozenset()
    assert work.manager.cleaned_offsets().keys() == {TWO}


@pytest.mark.parametrize("is_dirty", [True, False])
def test_a_log_with_a_record_above_the_topics_limit_is_left_as_it_is(*, is_dirty: bool) -> None:
    """The record may also be in the part that is clean, which would be copied again."""
    files = FaultyFiles()
    work = Round(files, (ONE, hosted(files, count=0)))
    one = work.logs[ONE]
    if is_dirty:
        fill(one)
    append_packed(one, b"large", bytes(500))
    if not is_dirty:
        fill(one)
        assert work.clean() == ONE
    one.config = replace(COMPACT, record_bytes_max=500)
    fill(one)
    before = [segment.size for segment in one.log.segments]
    done = work.clean_filthiest()
    assert done is not None
    assert "exceed the configured maximum record size of 500" in str(done.problem)
    assert work.manager.uncleanable == {ONE}
    assert [segment.size for segment in one.log.segments] == before


def append_packed(one: Hosted, key: bytes, value: bytes) -> None:
    options = BatchOptions(
        one.log.log_end_offset, partition_leader_epoch=0, compression=Compression.ZSTD
    )
    one.log.append(build_batch([RecordData(value, key, 1_000)], options))
    one.last_stable_offset = one.log.log_end_offset


def fill(one: Hosted) -> None:
    """Append records of one key, to the next segment and beyond."""
    segment_count = len(one.log.segments)
    while len(one.log.segments) < segment_count + 2:
        append_packed(one, b"key", b"value")


def test_a_disk_that_fails_is_not_a_fault_of_the_log(files: FaultyFiles) -> None:
    work = Round(files, (ONE, hosted(files)))
    files.fail("read", 2)
    with pytest.raises(DiskError):
        work.clean()
    assert work.manager.uncleanable == frozenset()
    assert work.clean() == ONE


def test_a_pass_that_was_aborted_is_not_noted(files: FaultyFiles) -> None:
    work = Round(files, (ONE, hosted(files)))
    before = offsets(work.logs[ONE])
    files.before_read(3, lambda: work.cleaner.abort_cleaning(ONE))
    assert work.clean_filthiest() == CleanedLog(ONE, None)
    assert offsets(work.logs[ONE]) == before
    assert FILE not in files.names


def test_no_pass_begins_over_an_aborted_partition_before_it_is_forgotten() -> None:
    """Its directory may be about to be renamed: a pass must not look for it there."""
    files = FaultyFiles()
    one, two = hosted(files, ONE), hosted(files, TWO, count=13)
    work = Round(files, (ONE, one), (TWO, two))
    work.cleaner.abort_cleaning(ONE)
    one.log.abandon()
    assert work.clean() == TWO
    assert work.clean() is None
    assert work.manager.cleaned_offsets() == {TWO: two.log.segments[-1].base_offset}
    work.cleaner.forget([ONE])
    work.logs[ONE] = hosted(files, TopicPartition("again", 0))
    assert work.clean() == ONE


@pytest.mark.parametrize("change", ["start", "truncate", "close"])
@pytest.mark.parametrize("read", range(1, 11))
def test_a_log_that_loses_records_meanwhile_keeps_its_segments(change: str, read: int) -> None:
    """Records that were read of a log must still be there when it is replaced."""
    files = FaultyFiles()
    work = Round(files, (ONE, hosted(files)))
    log = work.logs[ONE].log
    second, before = log.segments[1].base_offset, len(log.segments)

    def lose() -> None:
        if change == "start":
            log.increment_log_start_offset(second, now_ms=0)
        elif change == "truncate":
            log.truncate_to(second + 1, now_ms=0)
        else:
            log.abandon()

    files.before_read(read, lose)
    assert work.clean_filthiest() == CleanedLog(ONE, None)
    assert work.manager.uncleanable == frozenset()
    if change != "close":
        assert len(log.segments) == (before - 1 if change == "start" else 2)
        assert log.read(second, 1)
    assert not [path for path in files.names if path.name.endswith(".cleaned")]


def test_a_log_that_grows_meanwhile_is_cleaned(files: FaultyFiles) -> None:
    work = Round(files, (ONE, hosted(files)))
    log = work.logs[ONE].log
    record = build_batch([RecordData(b"v", b"key 0", 2_000)], BatchOptions(base_offset=20))

    def grow() -> None:
        log.roll()
        log.append(record[:12] + bytes(4) + record[16:])

    files.before_read(2, grow)
    done = work.clean_filthiest()
    assert done is not None
    assert done.end_offset is not None
    assert log.log_end_offset == 21


@pytest.mark.parametrize("config", [COMPACT, CleanupConfig(retention_ms=-1)])
def test_what_lay_below_the_start_when_the_log_was_opened_goes(config: CleanupConfig) -> None:
    """KAFKA-7400: from a log that is only compacted, too."""
    files = FaultyFiles()
    hosted(files).log.close()
    checkpoint = LogCheckpoint(recovery_point=20, log_start_offset=10, had_clean_shutdown=True)
    log = hosted(files, count=0, checkpoint=checkpoint).log
    bases = [segment.base_offset for segment in log.segments]
    wanted = [base for base in bases if base > 10 or base == max(x for x in bases if x <= 10)]
    count = delete_old_segments(log, config, high_watermark=20, now_ms=NOW)
    assert count == len(bases) - len(wanted) > 0
    assert [segment.base_offset for segment in log.segments] == wanted
    assert log.log_start_offset == 10


def test_a_truncated_log_is_dirty_from_there_on(files: FaultyFiles) -> None:
    work = Round(files, (ONE, hosted(files)))
    OffsetCheckpointFile(FILE, files, advice="").write({ONE: 12})
    work.logs[ONE].config = replace(COMPACT, min_cleanable_dirty_ratio=1.0)
    work.logs[ONE].log.truncate_to(15, now_ms=0)
    assert work.clean() is None
    assert work.manager.cleaned_offsets() == {ONE: 12}
    work.logs[ONE].log.truncate_to(7, now_ms=0)
    assert work.clean() is None
    assert work.manager.cleaned_offsets() == {ONE: 7}


def test_the_last_batch_of_an_active_producer_stays_empty(files: FaultyFiles) -> None:
    """So that its next sequence is still known after the state was rebuilt (KAFKA-5490)."""
    log = hosted(files)
    last = LastRecord(last_data_offset=20, producer_epoch=0)
    record = RecordData(b"v", b"key 0", 2_000)
    options = BatchOptions(base_offset=20, producer_id=5, producer_epoch=0, base_sequence=0)
    log.log.append(build_batch([record], options._replace(partition_leader_epoch=0)))
    log.log.roll()
    log.log.append(build_batch([record], BatchOptions(base_offset=21, partition_leader_epoch=0)))
    log.log.append(build_batch([record], BatchOptions(base_offset=22, partition_leader_epoch=0)))
    log.log.roll()
    Round(files, (ONE, Hosted(log.log, log.config, 23, {5: last}))).clean()
    kept = {batch.base_offset: batch.record_count for batch in batches_in(log.log.segments)}
    assert kept == {19: 1, 20: 0, 22: 1}


@pytest.mark.parametrize("text", ["0\n1\none 0\n", "0\n1\none 0 x\n", "0\n2\none 0 1\n", "1\n0\n"])
def test_a_checkpoint_that_cannot_be_read_says_nothing(text: str) -> None:
    files = FaultyFiles(names={FILE: MemoryFile(text.encode())})
    work = Round(files, (ONE, hosted(files)))
    assert work.manager.cleaned_offsets() == {}
    assert work.clean() == ONE
    if text.startswith("0\n1"):
        files.names[FILE] = MemoryFile(text.encode())
        with pytest.raises(CorruptFileError, match="malformed"):
            OffsetCheckpointFile(FILE, files, advice="").read()
