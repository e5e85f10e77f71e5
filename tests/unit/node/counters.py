"""A made shard, with a count for each name, and a broker that coordinates it in simulated time."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

import pytest
from tests.unit.node.led_partitions import ME, LedPartitions
from tests.unit.storage.topic_logs import batch_of

from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.coordinator.effects import Effects, Outbox, Promise, Timeout
from kvorum.coordinator.record import (
    KEY_VERSION,
    CoordinatorRecord,
    decoded,
    record_type,
    value_version,
)
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.timeline import Timeline, TimelineMap
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.coordinator.context import CoordinatorContext
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.broker.coordinator.settings import CoordinatorSettings
from kvorum.node.broker.coordinator.transaction_write import (
    OUTSIDE,
    TransactionProducer,
    TransactionWrite,
)
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.transaction_log_key import TransactionLogKey
from kvorum.wire.messages.transaction_log_value import TransactionLogValue
from kvorum.wire.records import Compression, RecordBatch, RecordData

COUNTERS: Final = "__counters"
COUNTERS_ID: Final = b"counters-topicid"
NO_PRODUCER: Final = -1
PRODUCER: Final = 7
SILENCE_MS: Final = 1000
RETRIED: Final = "retried"
"""The name whose timer is set again where what it wrote is not committed."""
"""The time after which a count that nothing was added to is removed."""
COMMIT_TIMEOUT_MS: Final = 300
LOAD_MS: Final = 10
"""Enough for a load, in which no time passes."""
TIME_MS: Final = 5
UNKNOWN: Final = -1
"""The answer to one who waits for a count at the end of leadership."""
TOO_LONG: Final = "x" * 600
"""A name whose record is larger than a batch of the topic may be."""
_VALUE_VERSION: Final = 0
_TYPE: Final = TransactionLogKey.API_KEY

Outcome: TypeAlias = int | ErrorCode | None


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing was added to a count for a while."""

    name: str

    @property
    def key(self) -> str:
        return f"silence-{self.name}"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Keeps a promise with a count that is committed, or with None where it is not."""

    shard: "CounterShard"
    promise: Promise[int | None]
    count: int

    def completed(self, _now_ms: int) -> None:
        self.shard.outbox.answer(self.promise, self.count)

    def failed(self, _error: ErrorCode, _now_ms: int) -> None:
        self.shard.outbox.answer(self.promise, None)


class CounterShard:
    """Counts, the amounts of open transactions, and those who wait for a count."""

    def __init__(self, *, needs_latest_records_alone: bool = False) -> None:
        self.needs_latest_records_alone = needs_latest_records_alone
        self._timeline = Timeline()
        self.counts = TimelineMap[str, int](self._timeline)
        self.pending = TimelineMap[int, tuple[tuple[str, int], ...]](self._timeline)
        self.waiting: list[tuple[str, int, Promise[int]]] = []
        self.replayed_offsets: list[int] = []
        self.outbox = Outbox()

    # The protocol of a shard.

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    def load_record(
        self, offset: int, producer_id: int, key: bytes, value: bytes | None, now_ms: int
    ) -> None:
        if record_type(key) != _TYPE:
            return
        name = decoded(TransactionLogKey, key, KEY_VERSION)
        if value is None:
            record = CoordinatorRecord(name)
        else:
            version = value_version(value)
            record = CoordinatorRecord(name, decoded(TransactionLogValue, value, version), version)
        self.replay(offset, producer_id, record, now_ms)

    def replay(
        self, offset: int, producer_id: int, record: CoordinatorRecord, _now_ms: int
    ) -> None:
        self.replayed_offsets.append(offset)
        key = record.key
        value = record.value
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self.counts.remove(key.transactional_id)
            return
        assert isinstance(value, TransactionLogValue)
        if producer_id == NO_PRODUCER:
            self.counts.set(key.transactional_id, value.producer_id)
            return
        amounts = self.pending.get(producer_id) or ()
        self.pending.set(producer_id, (*amounts, (key.transactional_id, value.producer_id)))

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        for name, count in self.pending.remove(producer_id) or ():
            if is_commit:
                self.counts.set(name, count)

    def on_loaded(self, _now_ms: int) -> Effects:
        for name in dict(self.counts.items()):
            self.outbox.set_timer(Silence(name), SILENCE_MS, is_retried=name == RETRIED)
        return self.outbox.take()

    def on_timeout(self, timeout: Timeout, _now_ms: int) -> CoordinatorResult[None]:
        assert isinstance(timeout, Silence)
        return CoordinatorResult(effects=Effects(), records=(tombstone(timeout.name),))

    def append_completed(self, append: Append, now_ms: int) -> Effects:
        append.completed(now_ms)
        return self.outbox.take()

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int) -> Effects:
        append.failed(error, now_ms)
        return self.outbox.take()

    def on_unloaded(self, _now_ms: int) -> Effects:
        for _, _, promise in self.waiting:
            self.outbox.answer(promise, UNKNOWN)
        return self.outbox.take()

    # Requests.

    def count(self, name: str) -> int | None:
        """Return a count that is committed."""
        return self.counts.get(name, self._timeline.committed_offset)

    def newest_count(self, name: str) -> CoordinatorResult[int]:
        """Return a count that is written."""
        return CoordinatorResult(effects=Effects(), response=self.counts.get(name) or 0)

    def add(self, name: str, amount: int) -> CoordinatorResult[int]:
        """Add to a count, and return it; keep the promises of those who wait for it."""
        if amount < 0:
            error = RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
            return CoordinatorResult(effects=Effects(), error=error)
        count = (self.counts.get(name) or 0) + amount
        self.outbox.set_timer(Silence(name), SILENCE_MS, is_retried=name == RETRIED)
        for waited_name, at_least, promise in self.waiting:
            if waited_name == name and count >= at_least:
                self.outbox.answer(promise, count)
        return CoordinatorResult(
            effects=self.outbox.take(), response=count, records=(counted(name, count),)
        )

    def wait(self, name: str, at_least: int, promise: Promise[int]) -> CoordinatorResult[None]:
        """Have a promise wait for a count."""
        self.waiting.append((name, at_least, promise))
        return CoordinatorResult(effects=Effects())

    def reserve(self, name: str, promise: Promise[int | None]) -> CoordinatorResult[None]:
        """Add one; its promise is kept when that is committed, or is known not to be."""
        count = (self.counts.get(name) or 0) + 1
        append = Reservation(self, promise, count)
        return CoordinatorResult(effects=Effects(), records=(counted(name, count),), append=append)

    def set_at_once(self, name: str, count: int) -> CoordinatorResult[int]:
        """Set a count before its record is written, which is not to be replayed."""
        self.counts.set(name, count)
        return CoordinatorResult(
            effects=Effects(), response=count, records=(counted(name, count),), replay_records=False
        )

    def remove(self, *names: str) -> CoordinatorResult[None]:
        """Remove counts, in as many batches as it takes."""
        records = tuple(tombstone(name) for name in names)
        return CoordinatorResult(effects=Effects(), records=records, is_atomic=False)


class Counters(LedPartitions):
    """A broker that coordinates the counts of its partitions, at a time that a test moves."""

    def __init__(
        self,
        partition_count: int = 1,
        *,
        append_linger_ms: int = 0,
        needs_latest_records_alone: bool = False,
        loads_in_each_epoch: bool = False,
    ) -> None:
        super().__init__(COUNTERS, COUNTERS_ID, partition_count)
        self.shards: list[CounterShard] = []
        """All shards that were made, the one that is being loaded last."""

        def new_shard() -> CounterShard:
            self.shards.append(CounterShard(needs_latest_records_alone=needs_latest_records_alone))
            return self.shards[-1]

        self.events = Events()
        clock = NodeClock(self.events)
        self.coordinators = CoordinatorRuntime(
            CoordinatorSettings(
                topic=COUNTERS,
                partition_count=partition_count,
                compression=Compression.NONE,
                required_acks=1,
                base_sequence=0,
                commit_timeout_ms=COMMIT_TIMEOUT_MS,
                append_linger_ms=append_linger_ms,
                loads_in_each_epoch=loads_in_each_epoch,
            ),
            new_shard,
            self.partition,
            broker_id=ME,
            runtime=SimulatedRuntime(
                self.events, clock, Random(1), turn=lambda callback: callback()
            ),
        )

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        self.coordinators.on_image(before, after)

    @property
    def context(self) -> CoordinatorContext[CounterShard]:
        """The coordinator of the first partition."""
        return self.coordinators.context(0)

    @property
    def shard(self) -> CounterShard:
        """The loaded shard of the first partition."""
        shard = self.context.active_shard
        assert shard is not None
        return shard

    def run(self, elapsed_ms: float = LOAD_MS) -> None:
        """Let time pass, with what is due in it."""
        end_ms = self.events.now_ms + elapsed_ms
        while (callback := self.events.take_next(end_ms)) is not None:
            callback()

    def lead(self) -> None:
        """Lead with epoch 0, and load the counts."""
        self.register(leader_epoch=0)
        self.run()

    def write(self, *batches: RecordBatch) -> None:
        """Append to the first partition, as another coordinator would."""
        for one in batches:
            self.log.append_as_leader(
                one, leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR
            )

    def count(self, name: str) -> int | None:
        """Read a count that is committed."""
        return self.context.read(lambda shard: shard.count(name))

    def add(self, name: str, amount: int = 1) -> list[Outcome]:
        """Add to a count; return a list that gets the outcome when it is known."""
        return self.asked(lambda shard, _: shard.add(name, amount))

    def refusal(self) -> ErrorCode:
        """Return the code with which an operation is refused at once."""
        with pytest.raises(RequestError) as refused:
            self.add("a")
        return refused.value.code

    def add_in_transaction(self, name: str, amount: int = 1) -> list[Outcome]:
        """Add to a count in a transaction of the producer, which needs no verification."""
        transaction = TransactionWrite(TransactionProducer(PRODUCER, 0))
        return self.asked(lambda shard, _: shard.add(name, amount), transaction)

    def end_transaction(self, *, is_commit: bool) -> list[Outcome]:
        marker = TransactionMarker(PRODUCER, 0, 0, is_commit, 1)
        outcomes: list[Outcome] = []
        self.context.complete_transaction(marker, lambda result: outcomes.append(code(result)))
        return outcomes

    def asked(
        self,
        decide: Callable[[CounterShard, int], CoordinatorResult[int | None]],
        transaction: TransactionWrite = OUTSIDE,
    ) -> list[Outcome]:
        """Do an operation; return a list that gets its response or its error's code, when known."""
        outcomes: list[Outcome] = []
        self.context.write(decide, lambda result: outcomes.append(code(result)), transaction)
        return outcomes


def code(result: int | RequestError | None) -> Outcome:
    return result.code if isinstance(result, RequestError) else result


def counted(name: str, count: int) -> CoordinatorRecord:
    """Return the record of a count, in the form of another coordinator's records."""
    value = TransactionLogValue(producer_id=count)
    return CoordinatorRecord(TransactionLogKey(name), value, _VALUE_VERSION)


def tombstone(name: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(name))


def batch(*records: CoordinatorRecord, **options: Any) -> RecordBatch:
    """Return the records as they are in a log."""
    data = [RecordData(one.value_bytes(), one.key_bytes(), TIME_MS) for one in records]
    return batch_of(*data, **options)
