"""Histories that are saved and continued: the same rows, wherever the log is split."""

import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.spark.history.random_logs import random_log
from tests.support.golden_data import METADATA_NODES
from tests.support.spark.small_logs import begun_history, directory_records, written_records

from kvorum.history import HistoryRow, LogRecord, MetadataHistory, StateRow
from kvorum.history.errors import SavedHistoryError
from kvorum.history.metadata_history import MAGIC
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message

Everything = tuple[list[HistoryRow], list[HistoryRow], list[StateRow]]


def everything(history: MetadataHistory, records: Iterable[LogRecord]) -> Everything:
    """The rows of `records`, the open ones after them, and the state at the end."""
    return list(history.add_all(records)), list(history.open_rows()), list(history.end_state())


def resumed_at_every(history: MetadataHistory, records: list[LogRecord], step: int) -> Everything:
    """The same from a history that is saved and read back after every `step` records."""
    rows: list[HistoryRow] = []
    for first in range(0, len(records), step):
        history = MetadataHistory.from_bytes(history.to_bytes())
        rows += history.add_all(records[first : first + step])
    return rows, list(history.open_rows()), list(history.end_state())


@pytest.mark.parametrize("node", METADATA_NODES)
def test_real_logs_give_the_same_rows_when_they_are_split(golden_sets: Path, node: str) -> None:
    directory = golden_sets / node / "__cluster_metadata-0"
    records = directory_records(directory)
    first = records[0].offset
    whole = everything(begun_history(directory, first), records)
    # The small logs are split at every offset, as are the random ones below.
    step = 1 if len(records) < 100 else 29
    assert resumed_at_every(begun_history(directory, first), records, step) == whole


# A seed does not become simpler when it becomes smaller, so nothing is shrunk.
@settings(max_examples=15, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_any_log_gives_the_same_rows_when_it_is_split_at_every_offset(seed: int) -> None:
    records = random_log(seed)
    assert resumed_at_every(MetadataHistory(), records, 1) == everything(MetadataHistory(), records)


def test_saving_does_not_change_a_history() -> None:
    records = random_log(seed=1)
    history = MetadataHistory()
    for record in records:
        list(history.add(record))
        assert history.to_bytes() == history.to_bytes()
    assert everything(history, []) == (
        [],
        *everything(MetadataHistory.from_bytes(history.to_bytes()), [])[1:],
    )


def test_what_a_snapshot_contains_began_earlier_after_saving_too() -> None:
    topic_id = bytes(15) + b"\x07"
    messages: list[Message] = [
        KRaftVersionRecord(k_raft_version=1),
        VotersRecord(),
        RegisterBrokerRecord(broker_id=1, incarnation_id=bytes(15) + b"\x01", fenced=False),
        RegisterControllerRecord(controller_id=9, incarnation_id=bytes(15) + b"\x02"),
        TopicRecord("orders", topic_id),
        # Under-replicated, so that a condition is open too.
        PartitionRecord(0, topic_id, replicas=[1, 2], isr=[1], leader=1, partition_epoch=0),
    ]
    records = written_records([(message, type(message).MAX_VERSION) for message in messages])[1:]
    history = MetadataHistory.from_snapshot(records, end_offset=50, epoch=3)
    rows = list(history.open_rows())
    assert {type(row).__name__ for row in rows} == {
        *("PartitionTimelineRow", "AvailabilityRow", "BrokerSessionRow", "BrokerStateRow"),
        *("ControllerRegistrationRow", "QuorumEpochRow", "QuorumVotersRow"),
    }
    assert {row._asdict()["begins_earlier"] for row in rows} == {True}
    assert list(MetadataHistory.from_bytes(history.to_bytes()).open_rows()) == rows


def test_a_saved_history_continues_with_the_next_offset() -> None:
    records = written_records([])
    history = MetadataHistory()
    list(history.add_all(records))
    assert MetadataHistory.from_bytes(history.to_bytes()).next_offset == len(records)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"kvorum-history-2\n" + zlib.compress(b"{}"),
        MAGIC,
        MAGIC + b"not compressed",
        MAGIC + zlib.compress(b"not json\n"),
        MAGIC + zlib.compress(b"{}\n"),
        MetadataHistory().to_bytes()[:-1],
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SavedHistoryError):
        MetadataHistory.from_bytes(data)


def test_a_flipped_bit_is_found() -> None:
    history = MetadataHistory()
    list(history.add_all(random_log(seed=2)))
    saved = history.to_bytes()
    for position in range(len(MAGIC), len(saved), 97):
        damaged = bytearray(saved)
        damaged[position] ^= 1
        with pytest.raises(SavedHistoryError):
            MetadataHistory.from_bytes(bytes(damaged))
