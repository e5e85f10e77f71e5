"""Random steps for a share partition: fetches of a log, acknowledgements good and bad, writes."""

import importlib
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from tests.interop.share_partition_driver import NO_RECORDS, Driver

from kvorum.broker.share_partition.record_state import RecordState
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecord,
    ControlRecordType,
    RecordData,
    build_batch,
    encode_control_record,
)

MEMBERS: Final = ("anne", "bert", "carl")
WRITE_ERRORS: Final = (0,) * 14 + (11, 14, 15, 16, 3, 35, 58, 69, 74, 124, -1, 13, 7)
"""The errors of the persister, mostly none."""
NO_PRODUCER: Final = -1


def _message_set(first_offset: int, size: int) -> bytes:
    """Return messages in a compressed one, which has the offset of the last of them."""
    module: Any = importlib.import_module("aiokafka.record.legacy_records")
    builder = module.LegacyRecordBatchBuilder(1, int(Compression.GZIP), 1 << 20)
    for index in range(size):
        builder.append(index, timestamp=1, key=None, value=b"value")
    last_offset = first_offset + size - 1
    return last_offset.to_bytes(8, "big") + bytes(builder.build())[8:]


class Batch(NamedTuple):
    first_offset: int
    last_offset: int
    text: str


class Log:
    """A log that grows at its end, loses its beginning, and has lost some of its batches."""

    def __init__(self, random: Random, start_offset: int) -> None:
        self._random = random
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.batches: list[Batch] = []
        self.aborted: list[tuple[int, int]] = []
        """The producer id and the first offset of each aborted transaction."""
        self._open: dict[int, int] = {}
        self._has_gaps = random.random() < 0.5
        self._is_old = random.random() < 0.1
        """Whether clients have written sets of messages of format 1, from before transactions."""

    def append(self) -> None:
        random = self._random
        kind = random.random()
        if kind < 0.15 and self._open:
            self._end_transaction()
            return
        size = random.choice((1, 1, 2, 3, 5, 8, 13, 30))
        if self._is_old:
            self._add(_message_set(self.end_offset, size), size)
            return
        producer_id = random.choice((NO_PRODUCER, NO_PRODUCER, 1, 2))
        is_transactional = producer_id != NO_PRODUCER and random.random() < 0.8
        if is_transactional:
            self._open.setdefault(producer_id, self.end_offset)
        records = [RecordData(None, b"value")] * size
        options = BatchOptions(
            base_offset=self.end_offset,
            compression=random.choice((Compression.NONE, Compression.GZIP)),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            is_transactional=is_transactional,
        )
        self._add(build_batch(records, options), size)

    def _end_transaction(self) -> None:
        producer_id = self._random.choice(sorted(self._open))
        first_offset = self._open.pop(producer_id)
        is_abort = self._random.random() < 0.7
        if is_abort:
            self.aborted.append((producer_id, first_offset))
        kind = ControlRecordType.ABORT if is_abort else ControlRecordType.COMMIT
        record = encode_control_record(ControlRecord(kind, EndTxnMarker(5)), 0)
        options = BatchOptions(
            base_offset=self.end_offset,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        self._add(build_batch([record], options), 1)

    def _add(self, data: bytes, size: int) -> None:
        first_offset = self.end_offset
        self.end_offset += size
        is_lost = self._has_gaps and self._random.random() < 0.1
        if not is_lost:
            self.batches.append(Batch(first_offset, self.end_offset - 1, data.hex()))

    def move_start(self, offset: int) -> None:
        self.start_offset = offset
        self.batches = [one for one in self.batches if one.last_offset >= offset]

    def compact(self) -> None:
        """Lose a batch, whatever is in it."""
        if self._has_gaps and self.batches:
            self.batches.remove(self._random.choice(self.batches))

    def read(self, offset: int, count: int) -> list[Batch]:
        """Return the batches from the one with an offset on, at most `count` of them."""
        found = [one for one in self.batches if one.last_offset >= offset]
        return found[:count]

    def aborted_between(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Return the aborted transactions that a fetch of some offsets may come upon."""
        return [one for one in self.aborted if one[1] <= last_offset and first_offset >= 0]


class Script:
    """Makes up steps by what the share partition is like."""

    def __init__(self, random: Random, driver: Driver) -> None:
        self._random = random
        self._driver = driver
        self._log = Log(random, random.choice((0, 0, 100)))
        self._fetch_offset = 0
        """The offset that the next acquisition has read from."""
        self._log_start_moves = random.choice((0, 0.003, 0.03))
        self._writes = random.choice((0.15, 0.4, 0.7))

    def first_steps(self) -> list[str]:
        """Return the steps that begin with a stored state, or with none."""
        random = self._random
        log = self._log
        if random.random() < 0.5:
            start = random.choice((-1, log.start_offset))
            return [f"init 0 {random.randrange(5)} {start} {log.start_offset}"]
        offset = start = log.start_offset + random.choice((0, 0, 7))
        batches: list[str] = []
        for _ in range(random.randrange(1, 8)):
            offset += random.choice((0, 0, 0, 1, 4, 20))
            last = offset + random.choice((0, 1, 4, 9))
            state = random.choice((0, 0, 0, 2, 2, 3, 4, 4))
            batches.append(f"{offset}:{last}:{state}:{random.randrange(1, 5)}")
            offset = last + 1
        while log.end_offset < offset:
            log.append()
        return [f"init 0 {random.randrange(5)} {start} 0 {' '.join(batches)}"]

    def step(self) -> str:
        random = self._random
        driver = self._driver
        if random.random() < 0.1:
            self._log.append()
        if random.random() < 0.02:
            self._log.compact()
        if random.random() < self._log_start_moves:
            return self._move_log_start()
        kind = random.random()
        if driver.writes and kind < self._writes:
            index = random.choice((0, random.randrange(len(driver.writes))))
            return f"written {index} {random.choice(WRITE_ERRORS)}"
        if driver.dead_letters and random.random() < 0.2:
            return f"copied {random.randrange(len(driver.dead_letters))}"
        kind = random.random()
        if kind < 0.4:
            return self._acquire()
        if kind < 0.88:
            return self._acknowledge()
        if kind < 0.9:
            return f"release {random.choice(MEMBERS)}"
        if kind < 0.92:
            return self.settings_line("settings")
        return f"time {driver.now_ms + random.choice((1, 500, 1000, 3000, 9000))}"

    def settings_line(self, name: str) -> str:
        random = self._random
        locks = random.choice((20, 60, 200))
        limit = random.choice((2, 3, 5, 5, 10))
        duration_ms = random.choice((3000, 9000, 30_000))
        return (
            f"{name} {locks} {limit} {duration_ms} {random.choice('0111')} {random.choice('001')}"
        )

    def _acquire(self) -> str:
        random = self._random
        log = self._log
        next_offset = self._driver.partition.next_fetch_offset()
        fetch_offset = self._fetch_offset if random.random() < 0.05 else next_offset
        fetch_offset = max(fetch_offset, log.start_offset)
        self._fetch_offset = next_offset
        while log.end_offset <= fetch_offset and random.random() < 0.95:
            log.append()
        batches = log.read(fetch_offset, random.choice((1, 1, 2, 3, 5, 10)))
        parts = [
            "acquire",
            random.choice(MEMBERS),
            random.choice("0001"),
            str(random.choice((1, 5, 20, 500))),
            str(random.choice((0, 1, 2, 3, 5, 10, 50, 500))),
            str(fetch_offset),
            "".join(one.text for one in batches) or NO_RECORDS,
        ]
        if batches and random.random() < 0.6:
            aborted = log.aborted_between(batches[0].first_offset, batches[-1].last_offset)
            parts += [f"{producer_id}:{first}" for producer_id, first in aborted]
        return " ".join(parts)

    def _acknowledge(self) -> str:
        """Acknowledge runs of what one member has, and sometimes what it does not have."""
        random = self._random
        owned = _owned(self._driver)
        if not owned:
            partition = self._driver.partition
            first = partition.start_offset + random.choice((-5, 0, 0, 0, 0, 0, 0, 3, 3))
            last = partition.end_offset + random.choice((-5, 0, 0, 3))
            return f"ack {random.choice(MEMBERS)} {self._batch(max(first, 0), max(first, last, 0))}"
        member = random.choice(sorted({one[2] for one in owned}))
        runs = [(first, last) for first, last, of in owned if of == member]
        begin = random.randrange(len(runs))
        chosen = runs[begin : begin + random.choice((1, 1, 2, 3))]
        batches: list[str] = []
        for run in chosen:
            first, last = run
            if random.random() < 0.3:
                first = random.randrange(first, last + 1)
                last = random.randrange(first, last + 1)
            if random.random() < 0.03:
                last += random.choice((1, 5))
            if random.random() < 0.03:
                first -= random.choice((1, 5))
            batches.append(self._batch(max(first, 0), last))
        if random.random() < 0.03:
            member = random.choice(MEMBERS)
        return " ".join(["ack", member, *batches])

    def _batch(self, first: int, last: int) -> str:
        random = self._random
        kinds = (1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 0)
        if random.random() < 0.6 or first == last:
            types: Sequence[int] = [random.choice(kinds)]
        else:
            types = [random.choice(kinds) for _ in range(first, last + 1)]
        if random.random() < 0.01:
            types = [9 for _ in types]
        return f"{first}:{last}:{','.join(map(str, types))}"

    def _move_log_start(self) -> str:
        random = self._random
        log = self._log
        partition = self._driver.partition
        for _ in range(random.choice((0, 0, 3))):
            log.append()
        last = min(log.end_offset, partition.end_offset + random.choice((3, 3, 100)))
        if last <= log.start_offset:
            return f"start {log.start_offset}"
        low = max(log.start_offset, partition.start_offset)
        reach = random.choice((3, 10, 1000))
        offset = random.randrange(log.start_offset, max(last, log.start_offset + 1))
        offset = max(log.start_offset, min(offset, low + reach))
        log.move_start(offset)
        return f"start {offset}"


def _owned(driver: Driver) -> list[tuple[int, int, str]]:
    """Return the runs of records that a member has: first and last offset, and the member."""
    runs: list[tuple[int, int, str]] = []
    for batch in driver.partition.records.batches:
        states = batch.offset_states
        if states is None:
            if batch.state.state is RecordState.ACQUIRED:
                runs.append((batch.first_offset, batch.last_offset, batch.state.member_id))
            continue
        run: tuple[int, int, str] | None = None
        for index, state in enumerate(states):
            offset = batch.first_offset + index
            is_owned = state.state is RecordState.ACQUIRED
            if is_owned and run is not None and run[2] == state.member_id:
                run = (run[0], offset, run[2])
                continue
            if run is not None:
                runs.append(run)
            run = (offset, offset, state.member_id) if is_owned else None
        if run is not None:
            runs.append(run)
    return runs
