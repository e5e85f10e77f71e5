"""The rows of a stream over a quorum that is written to, beside the logs of its controllers."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from tests.support.quorum.quorum import Quorum
from tests.support.raw_client import RawClient
from tests.support.spark.small_logs import LOG_FOLDER
from tests.support.spark.streaming_reads import MicroBatches
from tests.support.waiting import Threads, wait_for, wait_for_change

from kvorum.metadata.record_frame import decode_record
from kvorum.spark.metadata_source.columns import columns_named
from kvorum.spark.metadata_source.quorum_stream import QuorumStreamReader
from kvorum.spark.streaming.options import quorum_options, stream_options
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.json_form import to_json
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from kvorum.wire.records import RecordBatch, decode_control_record, read_batches

VERSION: Final = 1
USERS_PER_REQUEST: Final = 3


class QuotaWriter:
    """A thread that sets one quota for each user of a row of numbers; use as a context."""

    def __init__(self, addresses: Callable[[], list[str]]) -> None:
        self.acknowledged: list[str] = []
        """The users whose records are committed."""
        self._addresses = addresses
        self._next_number = 0
        self._is_ending = threading.Event()
        self._progress = threading.Condition()
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._write_all)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending.set()
        self._threads.join()

    def wait_for_more(self, count: int) -> None:
        """Wait until `count` more users are acknowledged."""
        with self._progress:
            wanted = len(self.acknowledged) + count
        wait_for_change(
            self._progress,
            lambda: len(self.acknowledged) >= wanted,
            f"{wanted} users are acknowledged",
            otherwise=lambda: len(self.acknowledged),
        )

    def write_one_more(self) -> None:
        """Write the records of one request, once the thread has ended."""
        assert not self._threads.are_alive
        with RawClient(self._addresses()[0]) as client:
            assert self._write(client)

    def _write_all(self) -> None:
        while not self._is_ending.is_set():
            for address in self._addresses():
                with suppress(OSError, AssertionError), RawClient(address) as client:
                    while not self._is_ending.is_set() and self._write(client):
                        pass

    def _write(self, client: RawClient) -> bool:
        # Whether or not this request is acknowledged, no user is written twice.
        number = self._next_number
        self._next_number += USERS_PER_REQUEST
        users = [f"user-{number + index}" for index in range(USERS_PER_REQUEST)]
        answer = client.ask(_request(users), AlterClientQuotasResponse, VERSION)
        if any(entry.error_code != ErrorCode.NONE for entry in answer.entries):
            return False
        with self._progress:
            self.acknowledged += users
            self._progress.notify_all()
        self._is_ending.wait(0.01)
        return True


def _request(users: list[str]) -> AlterClientQuotasRequest:
    operation = AlterClientQuotasRequest.OpData("consumer_byte_rate", 1000.0)
    entries = [
        AlterClientQuotasRequest.EntryData(
            [AlterClientQuotasRequest.EntityData("user", user)], [operation]
        )
        for user in users
    ]
    return AlterClientQuotasRequest(entries)


MORE = 30
"""The number of users that are written between two events."""
COLUMNS = ("offset", "epoch", "type", "json")
Row = tuple[int, int, str]


def stream_over(options: Mapping[str, str], columns: Sequence[str] = COLUMNS) -> MicroBatches:
    """Return a stream; a restart of it takes the options as they are by then."""
    return MicroBatches(
        lambda: QuorumStreamReader(
            stream_options(options), quorum_options(options), columns_named(columns)
        )
    )


def rows_of(stream: MicroBatches) -> list[Row]:
    return [(row["offset"], row["epoch"], row["json"]) for row in stream.rows]


def writing(quorum: Quorum) -> QuotaWriter:
    return QuotaWriter(lambda: [one.address for one in quorum.members.values()])


def read_on(stream: MicroBatches, writer: QuotaWriter, more: int = MORE) -> None:
    """Read until the user who was acknowledged last is among the rows.

    The rows may hold that user already: an acknowledgement comes after the commit.
    """
    if more:
        writer.wait_for_more(more)
    awaited = writer.acknowledged[-1]
    looked_at = 0

    def is_read() -> bool:
        nonlocal looked_at
        if any(awaited in row["json"] for row in stream.rows[looked_at:]):
            return True
        looked_at = len(stream.rows)
        stream.advance()
        return False

    wait_for(is_read, f"{awaited} is read")


def check(rows: list[Row], quorum: Quorum, writer: QuotaWriter, *, epochs_min: int) -> None:
    """Compare rows with the log of a controller that has caught up, and with what was acknowledged.

    The controller that was killed last may still lack the end.
    """
    for controller in quorum.members.values():
        controller.stop()
    last = max(offset for offset, _, _ in rows)
    stored = max((log_rows(one.data, last) for one in quorum.members.values()), key=len)
    assert Counter(rows) == Counter(stored)
    assert [offset for offset, _, _ in sorted(rows)] == list(range(last + 1))
    assert len({epoch for _, epoch, _ in rows}) >= epochs_min
    assert users_in(rows) >= set(writer.acknowledged)


def log_rows(data: Path, last: int) -> list[Row]:
    """Return the records of a stopped controller's log up to an offset."""
    segments = sorted((data / LOG_FOLDER).glob("*.log"))
    batches = [batch for file in segments for batch in read_batches(file.read_bytes())]
    return [row for batch in batches for row in records_of(batch) if row[0] <= last]


def records_of(batch: RecordBatch) -> Iterator[Row]:
    for record in batch.records():
        if batch.is_control:
            control = decode_control_record(record)
            value = to_json(control.message, control.version)
        else:
            assert record.value is not None
            value = to_json(*decode_record(record.value))
        yield record.offset, batch.partition_leader_epoch, json.dumps(value, separators=(",", ":"))


def users_in(rows: list[Row]) -> set[str]:
    found: set[str] = set()
    for _, _, text in rows:
        entity = json.loads(text).get("entity", [])
        found |= {part["entityName"] for part in entity if part["entityType"] == "user"}
    return found
