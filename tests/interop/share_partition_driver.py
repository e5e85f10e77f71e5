"""Our share partition, driven and shown as SharePartitionOracle.java does Kafka's."""

from typing import Final

from kvorum.broker.share_partition.acknowledgement import ShareAcknowledgementBatch
from kvorum.broker.share_partition.acquisition import (
    FetchedRecords,
    ShareAcquireMode,
    ShareAcquirer,
)
from kvorum.broker.share_partition.in_flight_batch import InFlightBatch
from kvorum.broker.share_partition.in_flight_state import InFlightState
from kvorum.broker.share_partition.overlapping_records import overlapping_records
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.share_partition import SharePartition
from kvorum.broker.share_partition.state_write import DeadLetter, StateWrite
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponseStateBatch,
)
from kvorum.wire.records.legacy import first_offset_of, read_entries

GROUP_ID: Final = "group"
TOPIC_ID: Final = bytes(7) + b"\x01" + bytes(7) + b"\x02"
LEADER_EPOCH: Final = 7
REASON: Final = "why"
"""The message of every error of the persister."""
NOT_ASKED: Final = -1
NO_RECORDS: Final = "none"
"""The records of a fetch that has read none."""


class Driver:
    """A share partition, with the writes and the dead letters that are not completed yet."""

    def __init__(self, line: str) -> None:
        self.settings = _settings(line.split(" "))
        self.now_ms = 0
        partition = TopicIdPartition(TOPIC_ID, 3, "topic")
        self.partition = SharePartition(GROUP_ID, partition, LEADER_EPOCH, lambda: self.settings)
        self.writes: list[tuple[int, StateWrite]] = []
        """The writes, each with the number of the request that waits for it."""
        self.dead_letters: list[DeadLetter] = []
        self._asked_count = 0
        self._answers: list[str] = []
        self._due: list[str] = []

    def answer(self, line: str) -> str:
        self._answers = []
        self._due = []
        result = self._step(line.split(" "))
        answers = " ".join(self._answers)
        due = " ".join(self._due)
        return f"{result} | {answers} | {due} | {self.described()}"

    def _step(self, parts: list[str]) -> str:
        match parts[0]:
            case "settings":
                self.settings = _settings(parts)
            case "init":
                self._initialize(parts)
            case "time":
                self._advance(int(parts[1]))
            case "acquire":
                return self._acquired(parts)
            case "ack":
                self._acknowledge(parts)
            case "release":
                self._ask(self.partition.release_acquired_records(parts[1]))
            case "start":
                self.partition.move_log_start(int(parts[1]))
            case "written":
                self._written(int(parts[1]), int(parts[2]))
            case "copied":
                dead_letter = self.dead_letters.pop(int(parts[1]))
                write = self.partition.complete_dead_letters([dead_letter])
                self._write(NOT_ASKED, write)
            case unknown:
                raise ValueError(unknown)
        return "ok"

    def _initialize(self, parts: list[str]) -> None:
        batches: list[ReadShareGroupStateResponseStateBatch] = []
        for text in parts[5:]:
            first, last, state, count = map(int, text.split(":"))
            batches.append(ReadShareGroupStateResponseStateBatch(first, last, state, count))
        result = ReadShareGroupStateResponse.PartitionResult(
            3, int(parts[1]), REASON, int(parts[2]), int(parts[3]), batches
        )
        number = self._next_number()
        try:
            if self.partition.begin_initialization():
                reset_offset = int(parts[4])
                self._take(self.partition.initialize(result, reset_offset=reset_offset))
            self._answers.append(f"{number}:ok")
        except RequestError as refusal:
            self._refuse(number, refusal)

    def _advance(self, now_ms: int) -> None:
        self.now_ms = now_ms
        write = self.partition.expire_locks(now_ms).write
        if write is not None:
            self._write(NOT_ASKED, write)

    def _acquired(self, parts: list[str]) -> str:
        aborted = [
            AbortedTransaction(producer_id, first_offset, 0, 0)
            for producer_id, first_offset in (map(int, text.split(":")) for text in parts[7:])
        ]
        data = b"" if parts[6] == NO_RECORDS else bytes.fromhex(parts[6])
        entries = list(read_entries(data))
        acquired = self.partition.acquire(
            ShareAcquirer(parts[1], ShareAcquireMode(int(parts[2])), int(parts[3])),
            FetchedRecords(int(parts[5]), entries, aborted),
            max_records=int(parts[4]),
            now_ms=self.now_ms,
        )
        texts = [
            f"{one.first_offset}-{one.last_offset}/{one.delivery_count}" for one in acquired.batches
        ]
        if acquired.batches:
            sent = overlapping_records(memoryview(data), entries, acquired.batches)
            texts.append(f"sent {first_offset_of(next(read_entries(sent)))}+{len(sent)}")
        return " ".join([str(acquired.record_count), *texts])

    def _acknowledge(self, parts: list[str]) -> None:
        batches: list[ShareAcknowledgementBatch] = []
        for text in parts[2:]:
            first, last, types = text.split(":")
            numbers = [int(one) for one in types.split(",")]
            batches.append(ShareAcknowledgementBatch(int(first), int(last), numbers))
        try:
            write = self.partition.acknowledge(parts[1], batches, now_ms=self.now_ms)
        except RequestError as refusal:
            self._refuse(self._next_number(), refusal)
        else:
            self._ask(write)

    def _ask(self, write: StateWrite | None) -> None:
        number = self._next_number()
        if write is None:
            self._answers.append(f"{number}:ok")
        else:
            self._write(number, write)

    def _write(self, number: int, write: StateWrite) -> None:
        self.writes.append((number, write))
        self._due.append(_write_text(write))

    def _written(self, index: int, error_code: int) -> None:
        number, write = self.writes.pop(index)
        completed = self.partition.complete_write(write, error_code, REASON)
        if number != NOT_ASKED and completed.refusal is not None:
            self._refuse(number, completed.refusal)
        elif number != NOT_ASKED:
            self._answers.append(f"{number}:ok")
        self._take(completed.dead_letters)

    def _take(self, dead_letters: tuple[DeadLetter, ...]) -> None:
        for one in dead_letters:
            self.dead_letters.append(one)
            cause = one.cause.value.replace(" ", "_")
            self._due.append(
                f"dead:{one.first_offset}-{one.last_offset}/{one.delivery_count}/{cause}"
            )

    def _next_number(self) -> int:
        self._asked_count += 1
        return self._asked_count - 1

    def _refuse(self, number: int, refusal: RequestError) -> None:
        message = str(refusal.message).replace(" ", "_")
        self._answers.append(f"{number}:{refusal.code.value}={message}")

    def described(self) -> str:
        partition = self.partition
        next_offset = partition.next_fetch_offset()
        can_acquire = "+" if partition.can_acquire_records() else "-"
        records = partition.records
        sought = "?" if records.may_have_available else ""
        window = records.gap_window
        gaps = "none" if window is None else f"{window.gap_start_offset}-{window.end_offset}"
        texts = [
            f"{partition.state.value} {partition.start_offset}-{partition.end_offset}",
            f"complete {records.delivery_complete_count}",
            f"next {next_offset}{can_acquire}{sought} gaps {gaps}",
            *map(_batch_text, records.batches),
        ]
        return " ".join(texts)


def _settings(parts: list[str]) -> SharePartitionSettings:
    return SharePartitionSettings(
        record_locks_max=int(parts[1]),
        delivery_count_limit=int(parts[2]),
        record_lock_duration_ms=int(parts[3]),
        is_renew_acknowledge_enabled=parts[4] == "1",
        is_dead_letter_queue_enabled=parts[5] == "1",
    )


def _write_text(write: StateWrite) -> str:
    data = write.data
    batches = [
        f"{one.first_offset}-{one.last_offset}/{int(one.delivery_state)}/{one.delivery_count}"
        for one in data.state_batches
    ]
    head = (
        f"write:{data.partition}/{data.state_epoch}/{data.leader_epoch}/{data.start_offset}"
        f"/{data.delivery_complete_count}"
    )
    return ",".join([head, *batches])


def _batch_text(batch: InFlightBatch) -> str:
    states = batch.offset_states
    if states is None:
        text = _state_text(batch.state)
    else:
        text = f"[{''.join(f'{_state_text(one)},' for one in states)}]"
    return f"{batch.first_offset}-{batch.last_offset}={text}"


def _state_text(state: InFlightState) -> str:
    until = ""
    if state.lock is not None:
        until = f"{state.lock.deadline_ms}{'!' if state.lock.has_expired else ''}"
    in_transition = "~" if state.is_in_transition else ""
    return f"{int(state.state)}/{state.delivery_count}/{state.member_id}/{until}{in_transition}"
