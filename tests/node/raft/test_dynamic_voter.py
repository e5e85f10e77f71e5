"""A directory formatted with a voter set: what the first leader writes is what real Kafka wrote."""

import json
import shutil
from pathlib import Path

from tests.node.raft.cluster import Lab
from tests.support.golden_data import metadata_directories

from kvorum.node.raft.control_records import (
    control_batch,
    quorum_controls,
    voter_set_of,
    voters_record_of,
)
from kvorum.raft.effects import AppendEpochStart
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.records import RecordBatch, decode_control_record, read_batches

STANDALONE = Path("standalone-4.3.1", "metadata", "broker-11", "__cluster_metadata-0")
FIRST_SEGMENT = "00000000000000000000.log"


def first_batch(directory: Path) -> RecordBatch:
    return next(read_batches((directory / FIRST_SEGMENT).read_bytes(), is_cut_allowed=True))


def epoch_start_of(batch: RecordBatch) -> AppendEpochStart | None:
    """Return the effect whose batch this must be, if it begins an epoch."""
    first = next(batch.records())
    message = decode_control_record(first).message
    if not isinstance(message, LeaderChangeMessage):
        return None
    controls = quorum_controls(batch)
    return AppendEpochStart(
        base_offset=batch.base_offset,
        epoch=batch.partition_leader_epoch,
        leader_id=message.leader_id,
        voter_ids=tuple(voter.voter_id for voter in message.voters),
        granting_ids=tuple(voter.voter_id for voter in message.granting_voters),
        kraft_version=controls.kraft_versions[0][1] if controls.kraft_versions else 0,
        voters=controls.voters[0][1] if controls.voters else None,
    )


def test_every_epoch_of_real_kafka_begins_with_the_batch_we_would_write(golden_sets: Path) -> None:
    count = 0
    for directory in metadata_directories(golden_sets):
        for segment in directory.glob("*.log"):
            for batch in read_batches(segment.read_bytes(), is_cut_allowed=True):
                start = epoch_start_of(batch) if batch.is_control else None
                if start is not None:
                    ours = control_batch(start, timestamp_ms=batch.base_timestamp)
                    assert ours == bytes(batch.data), (segment, batch.base_offset)
                    count += 1
    assert count >= 20


def test_voter_sets_of_real_kafka_come_back_as_they_were(golden_sets: Path) -> None:
    batch = first_batch(golden_sets / STANDALONE)
    ((_, voters),) = quorum_controls(batch).voters
    assert voter_set_of(voters_record_of(voters)) == voters
    assert voters.ids == (11,)


async def test_the_first_leader_copies_the_voters_into_the_log(lab: Lab, golden_sets: Path) -> None:
    golden = first_batch(golden_sets / STANDALONE)
    ((_, voters),) = quorum_controls(golden).voters
    (voter,) = voters.voters
    replica = await lab.voter(node_id=11)
    log_directory = replica.directory / "__cluster_metadata-0"
    log_directory.mkdir(parents=True)
    for name in golden_sets.joinpath(STANDALONE).glob("*-0000000000.checkpoint"):
        shutil.copy(name, log_directory)
    assert list(log_directory.iterdir()), "the golden node was not formatted with a voter set"
    replica.static_voters = ()
    replica.directory_id = voter.key.directory_id
    replica.local_listeners = tuple(
        (endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints
    )
    await replica.lead()
    assert replica.node.kraft_version == 1
    await replica.stop()
    ours = first_batch(log_directory)
    start = epoch_start_of(golden)
    assert start is not None
    assert bytes(ours.data) == control_batch(start, timestamp_ms=ours.base_timestamp)
    state = json.loads((log_directory / "quorum-state").read_text())
    assert state.pop("kvorumChecksum")
    golden_state = json.loads((golden_sets / STANDALONE / "quorum-state").read_text())
    assert state == {**golden_state, "leaderEpoch": 1}
