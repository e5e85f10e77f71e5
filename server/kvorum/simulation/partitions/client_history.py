"""The history of a world's clients, in the lines that ``kvorum check-history`` reads.

A key is a partition of the topic that stays. Values are the records of idempotent and transactional
producers, numbered as they are sent; records of other producers may be there twice, and are no
values. A consumer is a process; a producer is one until the outcome of what it sent is unknown.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.wire.records import RecordBatch

SEND: Final = "send"
TXN: Final = "txn"
OK: Final = "ok"
FAIL: Final = "fail"
INFO: Final = "info"
NO_OFFSET: Final = -1
"""The base offset in an answer that does not have it."""
_POLL: Final = "poll"
_ASSIGN: Final = "assign"
_CRASH: Final = "crash"
_INVOKE: Final = "invoke"
_NANOSECONDS: Final = 1_000_000
"""The nanoseconds in a millisecond."""

Line: TypeAlias = dict[str, Any]


class _Moment(NamedTuple):
    """The place of a line among all, and the world's time."""

    number: int
    now_ms: float


@dataclass(slots=True)
class _Sent:
    """A value that was sent to a partition, and its offset once that is known."""

    index: int
    value: int
    offset: int | None = None


@dataclass(slots=True)
class Operation:
    """An operation of a process: its sends, or what it polled of each partition."""

    history: "ClientHistory"
    process: int
    function: str
    invoked: _Moment
    isolation: IsolationLevel | None = None
    """The isolation level of the consumer; None for a producer, which is in every history."""
    sends: list[_Sent] = field(default_factory=list[_Sent])
    keys: tuple[int, ...] = ()
    polled: dict[int, list[tuple[int, int]]] = field(
        default_factory=dict[int, list[tuple[int, int]]]
    )
    completed: _Moment | None = None
    outcome: str = INFO

    def send(self, index: int, batch: RecordBatch) -> None:
        """Add the records of a batch; tombstones are no values."""
        for record in batch.records():
            if record.value is not None:
                number = self.history.number_value(index, record.value)
                self.sends.append(_Sent(index, number))

    def acknowledge(self, index: int, batch: RecordBatch, base_offset: int) -> None:
        """Note where the records of a batch are."""
        if base_offset == NO_OFFSET:
            return
        offsets = {
            self.history.value_of(index, record.value): base_offset + place
            for place, record in enumerate(batch.records())
        }
        for one in self.sends:
            if one.index == index and one.value in offsets:
                one.offset = offsets[one.value]

    def end(self, outcome: str) -> None:
        """Complete the operation, unless it has been."""
        if self.completed is None:
            self.completed = self.history.moment()
            self.outcome = outcome

    def lines(self, left_out: Collection[int]) -> Iterator[tuple[int, Line]]:
        """Yield the place of each line and the line, without some partitions."""
        yield self.invoked.number, self._line(self.invoked, _INVOKE, self._invoked_value(left_out))
        if self.completed is not None:
            value = self._completed_value(left_out)
            yield self.completed.number, self._line(self.completed, self.outcome, value)

    def _line(self, moment: _Moment, kind: str, value: list[Any]) -> Line:
        time_ns = int(moment.now_ms * _NANOSECONDS)
        return {"t": time_ns, "p": self.process, "type": kind, "f": self.function, "v": value}

    def _invoked_value(self, left_out: Collection[int]) -> list[Any]:
        if self.function == _POLL:
            return [[_POLL]]
        sends = [[SEND, one.index, one.value] for one in self.sends if one.index not in left_out]
        return [*self._kept_keys(left_out), *sends]

    def _completed_value(self, left_out: Collection[int]) -> list[Any]:
        if self.function == _POLL:
            kept = {str(key): found for key, found in self.polled.items() if key not in left_out}
            return [[_POLL, kept]]
        sends = [
            [SEND, one.index, [one.offset, one.value]]
            for one in self.sends
            if one.index not in left_out
        ]
        return [*self._kept_keys(left_out), *sends]

    def _kept_keys(self, left_out: Collection[int]) -> list[int]:
        return [key for key in self.keys if key not in left_out]


class Writer:
    """A producer that has one operation after the other.

    One that `is_left_out` sends no values.
    """

    def __init__(self, history: "ClientHistory", function: str, *, is_left_out: bool) -> None:
        self._history = history
        self._function = function
        self._is_left_out = is_left_out
        self._process = history.new_process()
        self._operation: Operation | None = None

    def send(self, index: int, batch: RecordBatch) -> None:
        """Add a batch to the operation that is under way, or to a new one."""
        if self._is_left_out:
            return
        if self._operation is None:
            self._operation = self._history.begin(self._process, self._function)
        self._operation.send(index, batch)

    def acknowledge(self, index: int, batch: RecordBatch, base_offset: int) -> None:
        """Note where the records of a batch are."""
        if self._operation is not None:
            self._operation.acknowledge(index, batch, base_offset)

    def end(self, outcome: str) -> None:
        """Complete the operation that is under way, if there is one."""
        if self._operation is None:
            return
        self._operation.end(outcome)
        self._operation = None
        if outcome == INFO:
            self._process = self._history.new_process()


class Reader:
    """A consumer of one partition.

    One that `is_left_out` reads another topic.
    """

    def __init__(
        self,
        history: "ClientHistory",
        index: int,
        isolation: IsolationLevel,
        *,
        is_left_out: bool = False,
    ) -> None:
        self._history = history
        self._is_left_out = is_left_out
        self._index = index
        self._isolation = isolation
        self._process = history.new_process()
        self._invoked = history.moment()
        self._add(_ASSIGN).keys = (index,)

    def invoke(self) -> None:
        """Note that it asks for records."""
        self._invoked = self._history.moment()

    def poll(self, offset: int, batches: Iterable[RecordBatch]) -> None:
        """Take the batches that it was given from an offset on."""
        if self._is_left_out:
            return
        found = self._history.values_in(self._index, offset, batches)
        if found:
            self._add(_POLL).polled[self._index] = found

    def seek(self) -> None:
        """Note that it reads on elsewhere."""
        self._invoked = self._history.moment()
        self._add(_CRASH)

    def _add(self, function: str) -> Operation:
        operation = Operation(
            self._history, self._process, function, self._invoked, self._isolation
        )
        operation.end(OK)
        if not self._is_left_out:
            self._history.add(operation)
        return operation


class ClientHistory:
    """The operations of a world's clients, whether or not they are written to a file."""

    def __init__(self, now_ms: Callable[[], float], partitions: int) -> None:
        self.partitions = partitions
        self._now_ms = now_ms
        self._moments = count()
        self._processes = count()
        self._operations: list[Operation] = []
        self._values: list[dict[bytes, int]] = [{} for _ in range(partitions)]

    def new_process(self) -> int:
        """Return the number of another process."""
        return next(self._processes)

    def moment(self) -> _Moment:
        """Return the present moment, which is later than every other one."""
        return _Moment(next(self._moments), self._now_ms())

    def begin(self, process: int, function: str) -> Operation:
        """Begin an operation of a producer."""
        operation = Operation(self, process, function, self.moment())
        self.add(operation)
        return operation

    def add(self, operation: Operation) -> None:
        """Add an operation."""
        self._operations.append(operation)

    def writer(self, function: str, *, is_left_out: bool = False) -> Writer:
        """Return another producer."""
        return Writer(self, function, is_left_out=is_left_out)

    def reader(self, index: int, isolation: IsolationLevel, *, is_left_out: bool = False) -> Reader:
        """Return another consumer."""
        return Reader(self, index, isolation, is_left_out=is_left_out)

    def number_value(self, index: int, value: bytes) -> int:
        """Return the number of a record's value, the next one if it was not sent before."""
        values = self._values[index]
        return values.setdefault(value, len(values))

    def value_of(self, index: int, value: bytes | None) -> int | None:
        """Return the number of a record's value; None for one that is not of the history."""
        return None if value is None else self._values[index].get(value)

    def values_in(
        self, index: int, offset: int, batches: Iterable[RecordBatch]
    ) -> list[tuple[int, int]]:
        """Return the offsets and values of the records from an offset on."""
        return [
            (record.offset, number)
            for batch in batches
            if not batch.is_control
            for record in batch.records()
            if record.offset >= offset
            and (number := self.value_of(index, record.value)) is not None
        ]

    def lines(self, isolation: IsolationLevel, left_out: Collection[int]) -> list[str]:
        """Return the lines of all producers, and of the consumers of an isolation level.

        `left_out` has the partitions that the history does not have.
        """
        placed = [
            line
            for operation in self._operations
            if operation.isolation in {None, isolation}
            for line in operation.lines(left_out)
        ]
        placed.sort(key=lambda one: one[0])
        return [json.dumps(line, separators=(",", ":")) for _, line in placed]
