"""The state of producers: Kafka's own ProducerStateManager and ours fold the same batches alike."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.support.kafka.java import Java

from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError, ProducerState
from kvorum.storage.log.verification_state import TransactionAppend
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    RecordData,
    build_batch,
    encode_control_record,
    read_batches,
)
from kvorum.wire.records.batch import INT32_MAX

EXPIRATION_MS: Final = 1000
LOGS: Final = 300
STEPS: Final = 60
EPOCH_MAX: Final = 2**15 - 1


class Script:
    """Makes up a log by what is likely to matter next; mostly right, and often nearly right."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._offset = random.choice((0, 50))
        self._sequences: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._sent: list[str] = []
        self._time = 0

    def steps(self) -> list[str]:
        return ["new", *(self._step() for _ in range(STEPS))]

    def _step(self) -> str:
        random = self._random
        self._time += random.randrange(100)
        kind = random.random()
        if kind < 0.07:
            return f"watermark {max(0, self._offset - random.randrange(12))}"
        if kind < 0.12:
            return f"expire {self._time + random.choice((0, 900, 1000))}"
        if kind < 0.2 and self._sent:
            return random.choice(self._sent[-8:])
        producer = random.choice((1, 2, 1000))
        # A log may also begin in the middle, at the highest epoch and near the highest sequence.
        epoch = self._epochs.setdefault(producer, random.choice((0, 0, 3, EPOCH_MAX - 1)))
        if random.random() < 0.12:
            epoch = max(0, min(EPOCH_MAX, epoch + random.choice((-1, 1, 1))))
        version = random.choice((0, 1, 2))
        step = (
            self._marker(producer, epoch, version)
            if random.random() < 0.25
            else self._data(producer, epoch, version)
        )
        self._sent.append(step)
        return step

    def _data(self, producer: int, epoch: int, version: int) -> str:
        random = self._random
        if epoch > self._epochs[producer]:
            self._sequences[producer] = 0
            self._epochs[producer] = epoch
        first = self._sequences.get(producer, random.choice((0, 0, 7, INT32_MAX - 3)))
        if random.random() < 0.1:
            first = max(0, min(INT32_MAX, first + random.choice((-1, 1, 5))))
        count = random.randrange(1, 5)
        options = BatchOptions(
            base_offset=self._offset,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=first,
            is_transactional=random.random() < 0.6,
        )
        self._offset += count
        self._sequences[producer] = (first + count) % (INT32_MAX + 1)
        records = [RecordData(b"v", None, self._time) for _ in range(count)]
        origin = random.choice(("CLIENT", "CLIENT", "CLIENT", "COORDINATOR", "REPLICATION"))
        return f"append {origin} {version} {build_batch(records, options).hex()}"

    def _marker(self, producer: int, epoch: int, version: int) -> str:
        random = self._random
        kind = random.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        if version == 2 and random.random() < 0.8:
            epoch = min(EPOCH_MAX, epoch + 1)
        message = EndTxnMarker(coordinator_epoch=random.choice((4, 5, 5, 6)))
        options = BatchOptions(
            base_offset=self._offset,
            producer_id=producer,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
        if epoch > self._epochs[producer]:
            self._epochs[producer] = epoch
            self._sequences[producer] = 0
        self._offset += 1
        record = encode_control_record(ControlRecord(kind, message), self._time)
        origin = random.choice(("COORDINATOR", "COORDINATOR", "REPLICATION"))
        return f"append {origin} {version} {build_batch([record], options).hex()}"


class Fold:
    """Our state, driven and shown as the Java program does with Kafka's."""

    def __init__(self) -> None:
        self._state = ProducerState()

    def answer(self, line: str) -> str:
        kind, *parts = line.split(" ")
        result = "ok"
        if kind == "new":
            self._state = ProducerState()
        elif kind == "append":
            batch = next(iter(read_batches(bytes.fromhex(parts[2]))))
            result = self._append(AppendOrigin[parts[0]], int(parts[1]), batch)
        elif kind == "watermark":
            self._state.on_high_watermark(int(parts[0]))
        else:
            self._state.expire(now_ms=int(parts[0]), expiration_ms=EXPIRATION_MS)
        return f"{result} | {self._described()}"

    def _append(self, origin: AppendOrigin, version: int, batch: RecordBatch) -> str:
        if origin is AppendOrigin.CLIENT:
            known = self._state.entry(batch.producer_id).duplicate_of(batch)
            if known is not None:
                return f"duplicate {known.first_offset} {known.last_offset}"
        try:
            transaction = TransactionAppend(transaction_version=version)
            ended = self._state.append(batch, origin, transaction)
        except ProducerError as error:
            return f"error {int(error.code)}"
        if ended is None:
            return "ok"
        stable = self._state.last_stable_offset(ended)
        self._state.complete(ended)
        facts = (ended.producer_id, ended.first_offset, ended.last_offset, int(ended.is_aborted))
        return " ".join(map(str, ("ended", *facts, stable)))

    def _described(self) -> str:
        state = self._state
        offsets = (state.end_offset, state.first_unstable_offset, state.first_undecided_offset)
        text = " ".join(str(-1 if offset is None else offset) for offset in offsets)
        for producer, entry in sorted(state.entries.items()):
            start = -1 if entry.transaction_start is None else entry.transaction_start
            facts = (producer, entry.epoch, entry.coordinator_epoch, entry.last_timestamp, start)
            text += f" ; {' '.join(map(str, facts))}"
            for batch in entry.batches:
                text += (
                    f" {batch.first_sequence}-{batch.last_sequence}"
                    f"@{batch.first_offset}-{batch.last_offset}@{batch.timestamp}"
                )
        return text


@pytest.mark.slow
def test_each_log_leads_to_the_state_that_kafka_has(java: Java) -> None:
    random = Random(98)
    lines = [line for _ in range(LOGS) for line in Script(random).steps()]
    answers = java.answers("ProducerStateOracle", asked=lines)
    fold = Fold()
    kinds: Counter[str] = Counter()
    for line, theirs in zip(lines, answers, strict=True):
        assert fold.answer(line) == theirs, line
        result = theirs.partition(" | ")[0]
        kinds[result if result.startswith("error") else result.partition(" ")[0]] += 1
    codes = (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    )
    wanted = ("duplicate", "ended", *(f"error {int(code)}" for code in codes))
    assert min(kinds[kind] for kind in wanted) > LOGS // 2, kinds
