"""The cleaner's map of keys, and its results where Kafka's cleaner once went wrong."""

import importlib
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.unit.peak_memory import peak_memory_below
from tests.unit.storage.local_logs import CONFIG, batches_in, loaded
from tests.unit.storage.topic_logs import marker

from kvorum.storage.cleaner.batch_filter import BatchFilter, CleanedTransactions, last_records
from kvorum.storage.cleaner.cleaner import Cleaner, Pass
from kvorum.storage.cleaner.offset_map import SLOT_BYTES, OffsetMap
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.log_loader import LogCheckpoint
from kvorum.storage.log.producer_state import ProducerState
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecordType,
    RecordBatch,
    RecordData,
    build_batch,
    read_batches,
)
from kvorum.wire.records.decompression import RECORD_BYTES_MAX
from kvorum.wire.records.legacy import read_entries

GAPS: Final = replace(CONFIG, segment_bytes=10_000, may_have_gaps=True)
ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
START_MS: Final = 1_000_000
RETENTION_MS: Final = 500


class World:
    """A log with its producers, and passes over it; offsets count up from 0."""

    def __init__(self) -> None:
        self.files = FaultyFiles()
        self.log = loaded(self.files, LogCheckpoint(), GAPS).log
        self.now = START_MS
        self.clean_to = 0
        self.producers = ProducerState()
        self._sequences: dict[tuple[int, int], int] = {}

    def data(
        self,
        *records: tuple[bytes | None, bytes | None],
        producer: int = -1,
        epoch: int = 0,
        is_transactional: bool = False,
        offset: int | None = None,
        compression: Compression = Compression.NONE,
    ) -> None:
        sequence = self._sequences.get((producer, epoch), 0)
        self._sequences[producer, epoch] = sequence + len(records)
        options = BatchOptions(
            base_offset=self.log.log_end_offset if offset is None else offset,
            partition_leader_epoch=0,
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else epoch,
            base_sequence=-1 if producer < 0 else sequence,
            is_transactional=is_transactional,
            compression=compression,
        )
        content = [RecordData(value, key, self.now) for key, value in records]
        self._append(build_batch(content, options))

    def end(self, producer: int, kind: ControlRecordType) -> None:
        batch = marker(
            kind,
            base_offset=self.log.log_end_offset,
            partition_leader_epoch=0,
            producer_id=producer,
            producer_epoch=0,
        )
        self._append(bytes(batch.data))

    def _append(self, data: bytes) -> None:
        self.log.append(data)
        (batch,) = read_batches(data)
        if batch.producer_id < 0:
            return
        ended = self.producers.append(batch, AppendOrigin.REPLICATION)
        if ended is None:
            return
        if ended.is_aborted:
            stable = self.producers.last_stable_offset(ended)
            self.log.segments[-1].transaction_index.append(
                AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
            )
        self.producers.complete(ended)

    def clean(
        self,
        *,
        slots: int = 1000,
        later_ms: int = 0,
        is_rolled: bool = True,
        is_more_committed: bool = False,
    ) -> None:
        """Clean all there is, after some time; a batch of no use follows in a new segment.

        It is committed if `is_more_committed`.
        """
        self.now += later_ms
        if is_rolled:
            self.log.roll()
            self.data((b"filler", b""))
        keys = OffsetMap(size_bytes=24 * slots, load_factor=0.9)
        work = Pass(
            first_dirty_offset=self.clean_to,
            first_uncleanable_offset=self.log.segments[-1].base_offset,
            high_watermark=self.log.segments[-1].base_offset + is_more_committed,
            last_records=last_records(self.producers.entries),
            delete_retention_ms=RETENTION_MS,
            now_ms=self.now,
        )
        self.clean_to = Cleaner(keys, files=self.files).clean(SharedLog(self.log), work)

    def batches(self) -> list[RecordBatch]:
        return batches_in(self.log.segments[:-1])

    def offsets(self) -> list[int]:
        return [record.offset for batch in self.batches() for record in batch.records()]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
@pytest.mark.parametrize("key_count", [2, 40])
def test_records_that_unpack_to_much_are_never_in_memory_together(
    world: World, compression: Compression, key_count: int
) -> None:
    """Whether all of them are kept, or the last two."""
    value = bytes(2**20)
    records = [(b"%d" % (number % key_count), value) for number in range(40)]
    world.data(*records, compression=compression)
    sent_bytes = world.log.segments[0].size
    with peak_memory_below(12 * sent_bytes + 15 * 2**20):
        world.clean()
    (cleaned, *_) = world.batches()
    kept = [record.offset for record in cleaned.content().records()]
    assert kept == list(range(40 - key_count, 40))
    assert cleaned.compression is compression


def test_a_key_like_that_of_a_marker_removes_no_marker(world: World) -> None:
    """KAFKA-14055."""
    world.data((b"a", b"1"), producer=5, is_transactional=True)
    world.end(5, COMMIT)
    world.data((b"\x00\x00\x00\x01", b"a user's"))
    world.data((b"b", b"2"), producer=6, is_transactional=True)
    world.end(6, COMMIT)
    world.clean()
    assert world.offsets() == [0, 1, 2, 3, 4]


def test_an_aborted_transaction_over_three_segments_goes(world: World) -> None:
    """KAFKA-8351."""
    for number in range(3):
        world.data((b"aborted %d" % number, b"x"), producer=5, is_transactional=True)
        world.data((b"kept %d" % number, b"y"))
        if number < 2:
            world.log.roll()
    world.end(5, ABORT)
    world.data((b"next", b""), producer=5, is_transactional=True)
    world.clean()
    assert world.offsets() == [1, 3, 5, 6, 7]
    assert [one.producer_id for one in world.log.segments[0].transaction_index.entries] == [5]


def test_a_marker_stays_as_long_as_data_of_its_transaction_does(world: World) -> None:
    """KAFKA-13727: data and marker are in different segments, and cleaned in different passes."""
    world.data((b"a", b"1"), producer=5, is_transactional=True)
    world.log.roll()
    world.data((b"b", b"2"), producer=5, is_transactional=True)
    world.end(5, COMMIT)
    world.data((b"later", b""), producer=5)
    for _ in range(4):
        world.clean(later_ms=RETENTION_MS)
        assert world.offsets()[:3] == [0, 1, 2]
    world.data((b"a", b""), (b"b", b""))
    # In this pass the data is still there, in the next it is not, and a horizon begins.
    world.clean()
    assert 2 in world.offsets()
    world.clean()
    assert 2 in world.offsets()
    world.clean(later_ms=RETENTION_MS)
    assert 2 not in world.offsets()


def test_the_end_of_what_is_committed_is_still_said(world: World) -> None:
    """KAFKA-17076: the last batch up to the high watermark stays, empty if need be."""
    world.data((b"a", b"1"))
    world.data((None, b"without a key"))
    world.clean()
    assert [(one.base_offset, one.record_count) for one in world.batches()] == [(0, 1), (1, 0)]
    world.clean()
    assert [one.base_offset for one in world.batches()] == [0, 2]


def test_nothing_stays_of_a_batch_that_more_follows_which_is_committed(world: World) -> None:
    """Up to 4.3 Kafka leaves an empty batch at the end of what a pass has cleaned."""
    world.data((b"a", b"1"))
    world.data((None, b"without a key"))
    world.clean(is_more_committed=True)
    assert [one.base_offset for one in world.batches()] == [0]


def test_old_messages_become_batches_and_the_end_is_said_where_nothing_is_left() -> None:
    """Kafka's cleaner fails there (IllegalStateException)."""
    module: Any = importlib.import_module("aiokafka.record.legacy_records")
    builder = module.LegacyRecordBatchBuilder(1, int(Compression.GZIP), 1 << 20)
    for offset, key in enumerate((b"a", b"b", b"a", None)):
        builder.append(offset, timestamp=START_MS, key=key, value=b"%d" % offset)
    wrapper = bytearray(builder.build())
    wrapper[7] = 3
    world = World()
    world.log.append(bytes(wrapper))
    builder_of_one = module.LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder_of_one.append(0, timestamp=START_MS, key=None, value=b"value")
    (alone,) = read_entries(bytes(builder_of_one.build()))
    world.log.append((4).to_bytes(8, "big") + bytes(alone.data[8:]))
    world.clean()
    first, last = world.batches()
    assert (first.magic, first.base_offset, first.last_offset) == (2, 1, 2)
    assert first.compression is Compression.GZIP
    assert [(one.offset, one.key, one.value) for one in first.records()] == [
        (1, b"b", b"1"),
        (2, b"a", b"2"),
    ]
    assert (last.base_offset, last.record_count) == (4, 0)


def test_a_segment_of_empty_batches_is_cleaned(world: World) -> None:
    """KAFKA-7385."""
    for producer in (5, 6):
        world.data((None, b"x"), producer=producer)
    world.clean()
    assert [one.record_count for one in world.batches()] == [0, 0]
    world.clean()
    assert [one.record_count for one in world.batches()] == [0, 0, 1]


def test_empty_batches_of_older_epochs_go(world: World) -> None:
    """KAFKA-8335."""
    for epoch in range(4):
        world.data((b"same", b"%d" % epoch), producer=5, epoch=epoch)
        world.clean()
    assert [one.producer_epoch for one in world.batches() if one.producer_id == 5] == [3]


def test_segments_far_apart_are_not_joined(world: World) -> None:
    """KAFKA-6264, KAFKA-12889: an index holds 2³¹ offsets; an empty segment is joined anyway."""
    world.data((b"a", b"1"))
    world.log.roll()
    world.data((b"x", b"old"), offset=2**31)
    world.log.roll()
    world.data((b"x", b"new"), offset=2**32)
    world.clean()
    assert [one.base_offset for one in world.log.segments] == [0, 1, 2**31 + 1, 2**32 + 1]
    assert [one.size > 0 for one in world.log.segments] == [True, False, True, True]
    world.clean()
    assert [one.base_offset for one in world.log.segments[:2]] == [0, 2**31 + 1]
    assert world.offsets() == [0, 2**32, 2**32 + 1]


def test_a_tombstone_goes_in_a_pass_after_its_horizon(world: World) -> None:
    """KIP-534."""
    world.data((b"k", b"1"))
    world.data((b"k", None))
    world.data((b"other", b"1"))
    world.clean()
    assert world.offsets() == [1, 2]
    assert world.batches()[0].delete_horizon_ms == world.now + RETENTION_MS
    before = bytes(world.batches()[0].data)
    world.clean(later_ms=RETENTION_MS - 1)
    assert bytes(world.batches()[0].data) == before
    world.clean(later_ms=1)
    assert 1 not in world.offsets()


def test_a_full_map_ends_the_pass_within_a_batch(world: World) -> None:
    world.data(*((b"key %d" % number, b"old") for number in range(6)))
    world.data(*((b"key %d" % number, b"new") for number in range(6)))
    world.clean(slots=5)
    assert world.clean_to == 4
    assert world.offsets() == list(range(12))
    seen: list[int] = []
    while world.clean_to < 12:
        world.clean(slots=5, is_rolled=False)
        seen.append(world.clean_to)
    assert seen == [8, 12]
    assert world.offsets() == list(range(6, 12))


def test_dirty_records_below_a_gap_are_all_mapped(world: World) -> None:
    """The clean part ends where the next segment begins, though no batch reaches it."""
    world.data((b"a", b"1"))
    world.log.roll()
    world.data((b"a", b"2"), offset=100)
    # This batch begins a segment of its own, which is named after it.
    world.data((b"filler", b""), offset=2**31 + 500)
    world.clean(is_rolled=False)
    assert world.clean_to == 2**31 + 500
    assert world.offsets() == [100]


def test_a_cleaned_segment_is_as_old_as_the_last_of_its_sources(world: World) -> None:
    """Retention by age asks for it where no record has a timestamp."""
    for number in range(2):
        world.data((b"key", b""))
        world.log.segments[-1].set_modified_ms(100 + number)
        world.log.roll()
    world.data((b"key", b""))
    world.log.segments[-1].set_modified_ms(200)
    world.clean()
    assert [one.modified_ms for one in world.log.segments] == [200, 0]


@pytest.mark.slow
def test_the_records_of_a_large_batch_are_not_all_objects_at_once() -> None:
    """A few KiB of packed bytes may be hundreds of thousands of records."""
    count = 100_000
    options = BatchOptions(partition_leader_epoch=0, compression=Compression.ZSTD)
    (batch,) = read_batches(build_batch([RecordData(b"v", b"k", START_MS)] * count, options))
    keys = OffsetMap(size_bytes=1000, load_factor=0.9)
    keys.put(b"k", count - 1)
    keys.latest_offset = count - 1
    rules = BatchFilter(
        offset_map=keys,
        transactions=CleanedTransactions(),
        last_records={},
        high_watermark=count,
        now_ms=START_MS,
        delete_retention_ms=RETENTION_MS,
        record_bytes_max=RECORD_BYTES_MAX,
    )
    with peak_memory_below(6_000_000):
        kept = rules.filtered(batch)
    assert kept is not None
    (left,) = next(iter(read_batches(kept))).records()
    assert left.offset == count - 1


@pytest.mark.parametrize("load_factor", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("slot_count", [3, 10, 500])
def test_it_holds_what_a_dictionary_holds(slot_count: int, load_factor: float) -> None:
    random = Random(slot_count)
    found = OffsetMap(size_bytes=slot_count * SLOT_BYTES + 23, load_factor=load_factor)
    wanted: dict[bytes, int] = {}
    for offset in range(4 * slot_count):
        key = b"%d" % random.randrange(2 * slot_count)
        assert found.get(key) == wanted.get(key, -1)
        if not found.is_full:
            found.put(key, offset)
            wanted[key] = found.latest_offset
            assert found.latest_offset == offset
    assert len(found) == len(wanted) == int(slot_count * load_factor)
    assert {key: found.get(key) for key in wanted} == wanted
    assert found.get(b"another") == -1
    found.clear()
    assert (len(found), found.latest_offset, found.get(b"1")) == (0, -1, -1)


def test_offset_0_is_an_offset() -> None:
    found = OffsetMap(size_bytes=240, load_factor=0.9)
    found.put(b"", 0)
    assert found.get(b"") == 0


def test_no_slot_is_used_twice() -> None:
    found = OffsetMap(size_bytes=2 * SLOT_BYTES, load_factor=1.0)
    found.put(b"a", 1)
    found.put(b"b", 2)
    with pytest.raises(ValueError, match="all 2 slots"):
        found.put(b"c", 3)


def test_a_map_of_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="do not take one key"):
        OffsetMap(size_bytes=SLOT_BYTES, load_factor=0.9)
