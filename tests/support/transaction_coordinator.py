"""A shard of transactions with a log and timers in memory, whose records a test commits."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from kvorum.coordinator.effects import Effects, SetTimer, Timeout
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.metadata.api import RequestError
from kvorum.transactions.add_partitions import WantedPartitions
from kvorum.transactions.end_transaction import WantedEnd
from kvorum.transactions.init_producer_id import ExpectedProducer
from kvorum.transactions.settings import TransactionCoordinatorSettings
from kvorum.transactions.shard import TransactionCoordinatorShard, TransactionSurroundings
from kvorum.transactions.transaction_log import transaction_record
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.error_codes import ErrorCode

ID: Final = "payments"
FIRST_PRODUCER: Final = 1000
TIMEOUT_MS: Final = 60_000
DATA: Final = TransactionPartition("data", 0)
Response = TypeVar("Response")


class Coordinator:
    """The caller of a shard; what is appended is committed at once unless `is_held`."""

    def __init__(self, transaction_version: int = 2) -> None:
        self.transaction_version = transaction_version
        self.now = 1
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[str, tuple[int, Timeout]] = {}
        self.ending: list[TransactionMetadata] = []
        """The transactions whose markers are wanted."""
        self.is_held = False
        self.refusal: ErrorCode | None = None
        """The error of the log upon the next append."""
        self.next_producer = FIRST_PRODUCER
        self._waiting: list[tuple[int, Append]] = []
        self.shard = self._new_shard()
        self._take(self.shard.on_loaded(self.now))

    def _new_shard(self) -> TransactionCoordinatorShard:
        return TransactionCoordinatorShard(
            TransactionCoordinatorSettings(),
            TransactionSurroundings(
                self._generate_producer_id,
                lambda: self.transaction_version,
                self.ending.append,
            ),
        )

    def _generate_producer_id(self) -> int:
        self.next_producer += 1
        return self.next_producer - 1

    @property
    def metadata(self) -> TransactionMetadata:
        found = self.shard.ids.committed(ID)
        assert found is not None
        return found

    def state(self) -> TransactionState:
        return self.metadata.state

    # --- requests ---

    def init(self, producer_id: int = -1, epoch: int = -1) -> tuple[int, int, int]:
        """Return code, id and epoch of the answer."""
        expected = ExpectedProducer(producer_id, epoch)
        try:
            response = self.do(
                lambda: self.shard.init_producer_id(ID, expected, TIMEOUT_MS, self.now)
            )
        except RequestError as error:
            return error.code, -1, -1
        return response.error_code, response.producer_id, response.producer_epoch

    def add(
        self, producer_id: int, epoch: int, *partitions: TransactionPartition, version: int = 2
    ) -> ErrorCode:
        wanted = WantedPartitions(
            ID, producer_id, epoch, frozenset(partitions or [DATA]), client_version=version
        )
        try:
            return self.do(lambda: self.shard.add_partitions(wanted, self.now))
        except RequestError as error:
            return error.code

    def end(
        self, producer_id: int, epoch: int, *, is_commit: bool = True, version: int = 2
    ) -> tuple[int, int, int]:
        """Return code, id and epoch of the answer."""
        wanted = WantedEnd(ID, producer_id, epoch, is_commit, version)
        try:
            response = self.do(lambda: self.shard.end_transaction(wanted, self.now))
        except RequestError as error:
            return error.code, -1, -1
        return response.error_code, response.producer_id, response.producer_epoch

    def verify(self, producer_id: int, epoch: int, *partitions: TransactionPartition) -> list[int]:
        wanted = WantedPartitions(
            ID, producer_id, epoch, frozenset(partitions or [DATA]), client_version=2
        )
        try:
            codes = self.shard.verify_partitions(wanted)
        except RequestError as error:
            return [error.code]
        return [codes[one] for one in partitions or [DATA]]

    def complete(self) -> None:
        """Report that the markers of the first transaction that waits are written."""
        prepared = self.ending.pop(0)
        self.do(lambda: self.shard.complete(prepared, self.now))

    # --- the caller of the shard ---

    def do(self, decide: Callable[[], CoordinatorResult[Response]]) -> Response:
        """Do an operation; return its response before it is committed."""
        result = decide()
        self._take(result.effects)
        timeline = self.shard.timeline
        offset = timeline.written_offset
        if self.refusal is not None and result.records:
            timeline.revert(offset)
            if result.append is not None:
                self._take(self.shard.append_failed(result.append, self.refusal, self.now))
            code, self.refusal = self.refusal, None
            raise RequestError.with_default_message(code)
        for index, record in enumerate(result.records):
            self.log.append((record.key_bytes(), record.value_bytes()))
            if result.replay_records:
                self.shard.replay(offset + index, -1, record, self.now)
        timeline.written_offset = offset + len(result.records)
        if result.append is not None:
            self._waiting.append((timeline.written_offset, result.append))
        if not self.is_held:
            self.commit()
        return result.response  # type: ignore[return-value]  # results without one are not read

    def commit(self) -> None:
        """Move the high watermark to the end of the log."""
        timeline = self.shard.timeline
        timeline.commit(timeline.written_offset)
        waiting, self._waiting = self._waiting, []
        for _, append in waiting:
            self._take(self.shard.append_completed(append, self.now))

    def expire_waits(self) -> None:
        """Let the time be over in which what was appended should have been committed."""
        waiting, self._waiting = self._waiting, []
        for _, append in waiting:
            code = ErrorCode.REQUEST_TIMED_OUT
            self._take(self.shard.append_failed(append, code, self.now))

    def load(self) -> None:
        """Read the log into a new shard, as another leader does."""
        self.timers.clear()
        self._waiting.clear()
        self.ending.clear()
        self.shard = self._new_shard()
        for offset, (key, value) in enumerate(self.log):
            self.shard.load_record(offset, -1, key, value, self.now)
            self.shard.timeline.written_offset = offset + 1
        if not self.is_held:
            self.shard.timeline.commit(len(self.log))
        self._take(self.shard.on_loaded(self.now))

    def put(self, metadata: TransactionMetadata) -> None:
        """Write a state to the log, and load it."""
        record: CoordinatorRecord = transaction_record(metadata, self.transaction_version)
        self.log.append((record.key_bytes(), record.value_bytes()))
        self.load()

    def pass_time(self, duration_ms: int) -> None:
        """Let the timers fire that are due after so much time, and those that they set."""
        until = self.now + duration_ms
        while due := [one for one in self.timers.items() if one[1][0] <= until]:
            key, (at, timeout) = min(due, key=lambda one: one[1][0])
            self.now = max(self.now, at)
            del self.timers[key]
            self._fire(timeout)
        self.now = until

    def _fire(self, timeout: Timeout) -> None:
        self.do(lambda: self.shard.on_timeout(timeout, self.now))

    def _take(self, effects: Effects) -> None:
        for change in effects.timers:
            if isinstance(change, SetTimer):
                key = change.timeout.key
                self.timers[key] = self.now + change.delay_ms, change.timeout
        answers: tuple[Any, ...] = effects.answers
        for answer in answers:
            answer.send()
