"""The metadata as a node loads it, and the history that is collected while it works."""

import logging
import math
from dataclasses import dataclass

import pytest
from tests.support.waiting import StandingClock

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import encode_record
from kvorum.node.controller.quorum_controller import QuorumControllerMetrics
from kvorum.node.metadata_events import MetadataEvents
from kvorum.node.metadata_loader import PIECE_RECORDS, ElectionCounts, MetadataLoader
from kvorum.node.raft import CommittedBatch, LoadedSnapshot
from kvorum.node.raft.measures import RaftMeasures
from kvorum.node.shared_server import MetadataLogListener
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Follower, Leader, Prospective, Role, Unattached
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

TOPIC = TopicRecord(name="a", topic_id=b"\x01" * 16)
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)
TOPIC_ID = bytes(15) + b"\x09"
CHANGE_OF_NOTHING = FeatureLevelRecord(name="kraft.version", feature_level=1)
VOTERS = [Voter(ReplicaKey(node_id, bytes([node_id]) * 16), ()) for node_id in (1, 2, 3)]


def batch(offset: int, *records: Message) -> CommittedBatch:
    """Return a batch of records, the first of which is at `offset`."""
    return CommittedBatch(
        base_offset=offset,
        last_offset=offset + len(records) - 1,
        epoch=1,
        append_timestamp_ms=0,
        values=tuple(encode_record(record, 0) for record in records),
        is_control=False,
        size_bytes=1,
    )


def test_a_snapshot_ends_before_its_end_offset() -> None:
    loader = MetadataLoader()
    values = iter([(encode_record(TOPIC, 0),)])
    loader.load_snapshot(
        LoadedSnapshot(end_offset=7, epoch=2, last_contained_log_timestamp_ms=0, values=values)
    )
    assert (loader.last_offset, loader.last_epoch, loader.published.last_offset) == (6, 2, 6)
    assert "a" in loader.published.topics.ids


def test_an_open_transaction_is_not_shown() -> None:
    loader = MetadataLoader()
    loader.commit([batch(0, BeginTransactionRecord(name="t")), batch(1, TOPIC)])
    assert "a" in loader.image.topics.ids
    assert "a" not in loader.published.topics.ids
    assert loader.published_offset == -1
    loader.commit([batch(2, EndTransactionRecord())])
    assert "a" in loader.published.topics.ids
    assert loader.published_offset == 2


def test_a_publishing_fault_is_logged_and_counted_and_others_get_the_image(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else a value that one part cannot use ends every node, and ends it again at each start."""
    loader = MetadataLoader()
    told: list[MetadataImage] = []

    def take(image: MetadataImage) -> None:
        raise ValueError(f"offset {image.last_offset}")

    loader.subscribe(take, doing="taking a value")
    loader.subscribe(told.append)
    loader.commit([batch(0, TOPIC)])
    assert told == [loader.image]
    assert loader.measures.publishing_fault_count == 1
    assert 'A metadata publishing fault doing="taking a value"' in caplog.text
    assert "offset 0" in caplog.text


def big_batch(offset: int, count: int) -> CommittedBatch:
    ids = range(offset, offset + count)
    return batch(offset, *(ProducerIdsRecord(1, 1, next_producer_id=one) for one in ids))


def test_what_takes_long_is_folded_in_pieces_and_shown_as_a_whole() -> None:
    loader = MetadataLoader()
    told: list[MetadataImage] = []
    loader.subscribe(told.append)
    loader.commit([batch(0, TOPIC)])
    before = loader.image
    pieces = loader.commit_in_pieces(
        [big_batch(1, 2 * PIECE_RECORDS), big_batch(2 * PIECE_RECORDS + 1, 10)]
    )
    waits = 0
    for _ in pieces:
        waits += 1
        assert loader.image is before
        assert loader.last_offset == 0
    assert waits == 2
    assert loader.last_offset == loader.image.last_offset == 2 * PIECE_RECORDS + 10
    assert loader.image.next_producer_id == 2 * PIECE_RECORDS + 10
    assert told == [before, loader.image]


def test_what_does_not_take_long_is_folded_at_once() -> None:
    loader = MetadataLoader()
    assert list(loader.commit_in_pieces([batch(0, TOPIC), big_batch(1, 10)])) == []
    assert loader.last_offset == 10


def test_a_snapshot_is_loaded_in_pieces_and_shown_as_a_whole() -> None:
    loader = MetadataLoader()
    values = iter(one.values for one in (big_batch(0, 1000), big_batch(1000, PIECE_RECORDS)))
    snapshot = LoadedSnapshot(
        end_offset=7, epoch=2, last_contained_log_timestamp_ms=0, values=values
    )
    assert [loader.last_offset for _ in loader.load_in_pieces(snapshot)] == [-1, -1]
    assert loader.last_offset == loader.image.last_offset == 6
    assert loader.image.next_producer_id == 999 + PIECE_RECORDS


class Heard:
    """Writes down what it hears, with how far the loader has come by then."""

    def __init__(self, loader: MetadataLoader) -> None:
        self.calls: list[tuple[str, int]] = []
        self._loader = loader

    def committed(self) -> None:
        self.calls.append(("committed", self._loader.last_offset))

    def lead(self, epoch: int) -> None:
        self.calls.append((f"lead {epoch}", self._loader.last_offset))

    def renounce(self) -> None:
        self.calls.append(("renounce", self._loader.last_offset))

    def leader_found(self) -> None:
        self.calls.append(("leader found", self._loader.last_offset))


def test_the_loader_has_folded_in_a_commit_before_it_is_heard_of() -> None:
    loader = MetadataLoader()
    listener = MetadataLogListener(loader, on_failure=lambda _: None)
    heard = Heard(loader)
    listener.register(heard)
    listener.on_leader_change(1, 3)
    for _ in listener.on_commit([batch(0, LEVEL)]):
        pass
    listener.on_leadership_gained(3)
    listener.on_leadership_lost(3)
    assert heard.calls == [("leader found", -1), ("committed", 0), ("lead 3", 0), ("renounce", 0)]


def test_that_no_leader_is_known_is_not_counted_as_one() -> None:
    loader = MetadataLoader()
    listener = MetadataLogListener(loader, on_failure=lambda _: None)
    heard = Heard(loader)
    listener.register(heard)
    listener.on_leader_change(None, 4)
    assert heard.calls == []


def test_a_failure_of_the_log_is_passed_on() -> None:
    failures: list[Exception] = []
    listener = MetadataLogListener(MetadataLoader(), failures.append)
    error = OSError("the disk is gone")
    listener.on_failure(error)
    assert failures == [error]


def leader(epoch: int) -> Leader:
    return Leader(
        epoch,
        own_key=VOTERS[0].key,
        own_endpoints=(),
        epoch_start_offset=0,
        granting_ids=(),
        check_quorum_deadline=0,
    )


def prospective() -> Prospective:
    return Prospective(
        1, tally=EpochElection(VoterSet.of(VOTERS), own_key=VOTERS[0].key), election_deadline=0
    )


def test_the_time_to_commit_is_shared_by_the_records_of_a_batch() -> None:
    measures = RaftMeasures(0)
    measures.took_role(leader(1), now_ms=0)
    measures.appended(10, end_offset=10, now_ms=100)
    measures.appended(1, end_offset=11, now_ms=110)
    measures.committed(9, now_ms=115)
    assert math.isnan(measures.commit_latency_ms.average(115))
    measures.committed(11, now_ms=120)
    # 20 ms for ten records, 10 ms for one: as Kafka has it.
    assert measures.commit_latency_ms.maximum(120) == 10
    assert measures.commit_latency_ms.average(120) == 6


def test_what_a_leader_did_not_commit_has_no_latency() -> None:
    measures = RaftMeasures(0)
    measures.took_role(leader(1), now_ms=0)
    measures.appended(1, end_offset=1, now_ms=0)
    measures.took_role(Unattached(2, leader_id=None, election_deadline=0), now_ms=50)
    measures.took_role(leader(3), now_ms=60)
    measures.committed(5, now_ms=70)
    assert math.isnan(measures.commit_latency_ms.average(70))


def test_an_election_takes_from_the_last_attempt_to_the_leader() -> None:
    measures = RaftMeasures(0)
    looking = prospective()
    measures.took_role(looking, now_ms=100)
    measures.took_role(looking, now_ms=130)
    assert math.isnan(measures.election_latency_ms.average(130))
    measures.took_role(leader(2), now_ms=150)
    measures.took_role(leader(3), now_ms=500)
    assert measures.election_latency_ms.maximum(500) == 50
    assert measures.election_latency_ms.average(500) == 50


def change(
    *, leader_id: int = -2, recovery: int = -1, eligible: list[int] | None = None
) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        leader=leader_id,
        leader_recovery_state=recovery,
        eligible_leader_replicas=eligible,
    )


@pytest.fixture
def image() -> MetadataImage:
    """One partition on brokers 1 to 3; 2 is eligible, 3 is not."""
    partition = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=[1, 2, 3],
        isr=[1],
        leader=1,
        directories=[bytes(16)] * 3,
        eligible_leader_replicas=[2],
    )
    topic = TopicRecord(name="a", topic_id=TOPIC_ID)
    return MetadataImage().apply_all([(topic, 0, 0), (partition, 2, 1)])


@pytest.mark.parametrize(
    ("changes", "unclean", "from_elr"),
    [
        ([change(leader_id=1)], 0, 0),
        ([change(leader_id=-1)], 0, 0),
        ([change(leader_id=2)], 0, 1),
        ([change(leader_id=3, recovery=1)], 1, 0),
        ([change(recovery=0)], 0, 0),
        ([change(eligible=[]), change(leader_id=2)], 0, 0),
        ([change(eligible=[2, 3]), change(leader_id=3)], 0, 1),
    ],
)
def test_elections_from_outside_the_isr_are_counted_as_in_kafka(
    image: MetadataImage, changes: list[PartitionChangeRecord], unclean: int, from_elr: int
) -> None:
    counts = ElectionCounts()
    records = [(record, 2, 2 + number) for number, record in enumerate(changes)]
    assert list(counts.watch(image, iter(records))) == records
    assert (counts.unclean, counts.from_elr) == (unclean, from_elr)


def test_a_controller_that_works_half_the_time_is_idle_the_other_half() -> None:
    measures = QuorumControllerMetrics(0)
    assert measures.idle_ratio(0) == 1
    for second in range(40):
        measures.processed(started_ms=second * 1000, ended_ms=second * 1000 + 500)
    assert measures.idle_ratio(40_000) == pytest.approx(0.5)
    assert measures.operation_count == 40
    assert measures.processing_ms.distribution().total == 20_000


@dataclass
class PlayedReplica:
    """The replica, as the events use it."""

    leader_high_watermark: int | None
    voters: VoterSet


def broker(broker_id: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id, broker_epoch=broker_id, incarnation_id=bytes([broker_id]) * 16
    )


def unclean() -> list[Message]:
    partition = PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1)
    return [TopicRecord(name="a", topic_id=TOPIC_ID), partition, change(leader_id=1, recovery=1)]


def test_what_was_in_the_log_before_is_summed_up_and_no_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    raft = PlayedReplica(None, VoterSet.of(VOTERS))
    loader = MetadataLoader(StandingClock())
    MetadataEvents(loader, raft)
    loader.commit([batch(0, FeatureLevelRecord(name="metadata.version", feature_level=30))])
    loader.commit([batch(1, broker(1))])
    raft.leader_high_watermark = 6
    loader.commit([batch(2 + number, record) for number, record in enumerate(unclean())])
    assert loader.measures.elections.unclean == 1
    assert caplog.messages == []
    loader.commit([batch(5, broker(2))])
    (line,) = caplog.messages
    assert line == (
        "All committed metadata is known here offset=5 voters=1,2,3 brokers=2 fenced=2 topics=1 "
        "metadata_version=30"
    )
    assert loader.measures.elections.unclean == 0
    # Once it has caught up it tells everything, also where a moment's news is still to come.
    raft.leader_high_watermark = 10
    caplog.clear()
    loader.commit([batch(6, broker(3))])
    (line,) = caplog.messages
    assert line.startswith("A broker has registered broker=3 epoch=3")


def test_voters_that_come_and_go_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    raft = PlayedReplica(0, VoterSet.of(VOTERS[:2]))
    loader = MetadataLoader(StandingClock())
    MetadataEvents(loader, raft)
    loader.commit([batch(0, broker(1))])
    caplog.clear()
    raft.voters = VoterSet.of(VOTERS[:2])
    loader.commit([batch(1, CHANGE_OF_NOTHING)])
    assert caplog.messages == []
    raft.voters = VoterSet.of(VOTERS[1:])
    loader.commit([batch(2, CHANGE_OF_NOTHING)])
    assert caplog.messages == ["The voters of the quorum have changed voters=2,3 added=3 removed=1"]


def test_the_loader_counts_batches_and_their_records() -> None:
    clock = StandingClock()
    loader = MetadataLoader(clock)
    loader.commit([batch(0, broker(1)), batch(1, broker(2))])
    assert loader.measures.batch_sizes.distribution().count == 2
    assert loader.measures.batch_sizes.distribution().total == 2
    assert loader.measures.idle_ratio(clock.now_ms) == 1
    assert set(loader.published.cluster.brokers) == {1, 2}


def test_a_role_is_noted_once() -> None:
    measures = RaftMeasures(0)
    roles: list[Role] = [prospective()]
    roles.append(Follower(1, leader_id=2, leader_endpoints=(), fetch_deadline=0))
    for role in roles * 2:
        measures.took_role(role, now_ms=10)
    assert measures.election_latency_ms.average(10) == 0
