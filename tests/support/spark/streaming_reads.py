"""The reading of a stream: micro-batches without Spark, and queries on a busy machine."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.query import StreamingQuery

Row = dict[str, Any]


class Reader(Protocol):
    """Methods of a `DataSourceStreamReader` that Spark calls."""

    def initialOffset(self) -> dict[str, Any]: ...
    def latestOffset(self) -> dict[str, Any]: ...
    def partitions(
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Sequence[InputPartition]: ...
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]: ...
    def stop(self) -> None: ...


class MicroBatches:
    """A query: its checkpoint, and the rows of the micro-batches that are committed.

    A plan is remembered before it is carried out. What was planned and not committed when the
    query ended is carried out again, by a new reader.
    """

    def __init__(self, new_reader: Callable[[], Reader]) -> None:
        self.rows: list[Row] = []
        self.committed: dict[str, Any] | None = None
        self.planned: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._new_reader = new_reader
        self._reader = new_reader()

    def restart(self) -> None:
        """End the process of the reader, and begin in another one."""
        self._reader.stop()
        self._reader = self._new_reader()
        last = self.committed if self.planned is None else self.planned[1]
        if last is not None:
            assert list(self._reader.partitions(last, last)) == []

    def stop(self) -> None:
        self._reader.stop()

    def plan(self) -> bool:
        """Plan a micro-batch if there is news and none is planned; return whether one is."""
        if self.planned is None:
            end = self._reader.latestOffset()
            if self.committed is None:
                self.committed = self._reader.initialOffset()
            if end == self.committed:
                return False
            self.planned = self.committed, end
        return True

    def read(self) -> list[Row]:
        """Return the rows of the planned micro-batch, each task's by a copy of the reader."""
        assert self.planned is not None
        return [
            row
            for partition in self._reader.partitions(*self.planned)
            for batch in _copied(self._new_reader()).read(_copied(partition))
            for row in batch.to_pylist()
        ]

    def advance(self) -> list[Row]:
        """Carry out a micro-batch; return its rows, none where nothing is new."""
        if not self.plan():
            return []
        rows = self.read()
        assert self.planned is not None
        self.committed, self.planned = self.planned[1], None
        self.rows += rows
        return rows


def _copied(value: Any) -> Any:
    """Return what arrives in another process."""
    return pickle.loads(pickle.dumps(value))


STARTS_MAX = 10
NO_PYTHON = "Python worker failed to connect back"
"""The text of Spark when the Python process of a source took more than ten seconds to start."""


def start_patiently(
    start: Callable[[], StreamingQuery], is_running: Callable[[StreamingQuery], bool]
) -> StreamingQuery:
    """Start a query, again where its Python process took too long, as a user would.

    `is_running` waits until the query has come as far as to need no other such process, or has
    ended; it returns whether it went well.
    """
    for _ in range(STARTS_MAX):
        query = start()
        if is_running(query):
            return query
        error = query.exception()
        if error is None or NO_PYTHON not in str(error):
            return query
    raise AssertionError(NO_PYTHON)
