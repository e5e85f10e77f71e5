"""The loader reads a snapshot, shows no open transaction, and is heard of by others afterwards."""

from tests.unit.node.committed_batches import batch

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import encode_record
from kvorum.node.metadata_loader import PIECE_RECORDS, MetadataLoader
from kvorum.node.raft import CommittedBatch, LoadedSnapshot
from kvorum.node.shared_server import MetadataLogListener
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.topic_record import TopicRecord

TOPIC = TopicRecord(name="a", topic_id=b"\x01" * 16)
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


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
