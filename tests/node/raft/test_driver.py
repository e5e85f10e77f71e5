"""In which order the driver does what the core wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.raft.cluster import CLUSTER_ID, LISTENER
from tests.node.raft.driven_driver import DrivenDriver

from kvorum.node.raft.control_records import read_fetched
from kvorum.node.raft.directory import batches_of
from kvorum.node.raft.translation import begin_quorum_epoch, vote
from kvorum.raft import Endpoint, OffsetAndEpoch, ReplicaKey
from kvorum.raft import messages as core
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.quorum_state import QUORUM_STATE_FILE
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.vote import VoteResponse
from kvorum.wire.records import build_data_batch


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[DrivenDriver]:
    driven = DrivenDriver(tmp_path)
    yield driven
    driven.close()


def test_a_vote_is_answered_when_it_is_stored(driven: DrivenDriver) -> None:
    wanted = core.VoteRequest(
        epoch=5,
        replica=ReplicaKey(3, b"\x03" * 16),
        voter=None,
        log_end=OffsetAndEpoch(0, 0),
        is_pre_vote=False,
    )
    driven.receive(vote.write_request(wanted, cluster_id=CLUSTER_ID), version=2)
    assert driven.answers == []
    driven.runtime.do_work()
    stored = (driven.settings.directory / QUORUM_STATE_FILE).read_text()
    assert '"votedId":3' in stored
    assert '"leaderEpoch":5' in stored
    (answer,) = driven.answers
    assert isinstance(answer, VoteResponse)
    assert answer.topics[0].partitions[0].vote_granted


def test_a_record_that_was_cut_off_is_never_told_of(driven: DrivenDriver) -> None:
    driven.win()
    assert driven.driver.core.role.leader_id == 1
    driven.driver.propose([b"lost"], epoch=1)
    driven.runtime.do_work()
    begin = core.BeginQuorumEpochRequest(2, 2, None, (Endpoint(LISTENER, "host2", 9093),))
    driven.receive(begin_quorum_epoch.write_request(begin, cluster_id=CLUSTER_ID), version=1)
    driven.runtime.do_work()
    driven.fetch_response(2, diverging=OffsetAndEpoch(0, 0))
    assert driven.driver.log.end_offset == 0
    first = build_data_batch([b"first"], base_offset=0, epoch=2, timestamp_ms=0)
    second = build_data_batch([b"kept"], base_offset=1, epoch=2, timestamp_ms=0)
    driven.fetch_response(2, high_watermark=1, data=first + second)
    assert driven.listener.values == [b"first"]
    driven.fetch_response(2, high_watermark=2)
    assert driven.listener.values == [b"first", b"kept"]


def damaged(data: bytes) -> memoryview:
    changed = bytearray(data)
    changed[-3] ^= 1
    return memoryview(bytes(changed))


def test_fetched_records_are_checked_before_they_are_stored() -> None:
    data = build_data_batch([b"something"], base_offset=0, epoch=1, timestamp_ms=0)
    assert len(read_fetched(memoryview(data)).batches) == 1
    with pytest.raises(CorruptBatchError):
        read_fetched(damaged(data))


def test_records_are_checked_before_they_are_applied(driven: DrivenDriver) -> None:
    data = build_data_batch([b"something"], base_offset=0, epoch=1, timestamp_ms=0)
    assert len(list(batches_of(driven.driver.log, memoryview(data)))) == 1
    with pytest.raises(CorruptLogError):
        list(batches_of(driven.driver.log, damaged(data)))
