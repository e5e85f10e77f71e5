"""The state machine of a simulated node: it keeps every value, and answers the writers.

Values are of two kinds: what clients write, and records of the metadata, which are folded into an
image as on a real node, and come into snapshots from there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
)
from kvorum.metadata.record_frame import FRAME_VERSION, decode_record, encode_record
from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord

OnCommit: TypeAlias = Callable[[int | None], None]
"""Takes the offset of a value that was committed, or None where that cannot be known."""
_RECORDS_PER_BATCH = 64
FIRST_IMAGE: Final = MetadataImage().apply(
    FeatureLevelRecord(
        name=METADATA_VERSION_FEATURE, feature_level=int(LATEST_PRODUCTION_METADATA_VERSION)
    ),
    0,
    -1,
)
"""The metadata of a formatted node, which need not be in the log."""


class _Waiting(NamedTuple):
    epoch: int
    on_commit: OnCommit


class Application:
    """The state machine of one process.

    It calls `on_record` with each record of the metadata and its offset, `on_applied` after new
    batches or a snapshot, and `on_leading` when it begins to lead.
    """

    def __init__(
        self,
        on_applied: Callable[[], None],
        *,
        on_leading: Callable[[], None],
        on_record: Callable[[int, bytes], None],
    ) -> None:
        self.values: dict[int, bytes] = {}
        self.image = FIRST_IMAGE
        self.next_offset = 0
        self.last_epoch = 0
        self.last_timestamp_ms = 0
        self.records_since_snapshot = 0
        self.failure: Exception | None = None
        self.leading_epoch: int | None = None
        self._on_applied = on_applied
        self._on_leading = on_leading
        self._on_record = on_record
        self._waiting: dict[int, list[_Waiting]] = {}

    def wait_for(self, offset: int, *, epoch: int, on_commit: OnCommit) -> None:
        """Call `on_commit` once what was proposed at an offset is committed, or cannot be known."""
        self._waiting.setdefault(offset, []).append(_Waiting(epoch, on_commit))

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None:
        """Begin again with the values of a snapshot."""
        values = [value for batch in snapshot.values for value in batch]
        self.values = dict(read_value(value) for value in values if not is_record(value))
        records = (value for value in values if is_record(value))
        self.image = with_records(MetadataImage(), records, snapshot.end_offset - 1)
        self.next_offset, self.last_epoch = snapshot.end_offset, snapshot.epoch
        self.last_timestamp_ms = snapshot.last_contained_log_timestamp_ms
        self.records_since_snapshot = 0
        self._on_applied()

    def on_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Keep the values, and answer their writers."""
        for batch in batches:
            for offset, value in enumerate(batch.values, batch.base_offset):
                if is_record(value):
                    self.image = with_records(self.image, [value], offset)
                    self._on_record(offset, value)
                else:
                    self.values[offset] = value
            self.next_offset, self.last_epoch = batch.last_offset + 1, batch.epoch
            self.last_timestamp_ms = batch.append_timestamp_ms
            self.records_since_snapshot += batch.last_offset + 1 - batch.base_offset
            for offset in range(batch.base_offset, batch.last_offset + 1):
                for waiting in self._waiting.pop(offset, ()):
                    waiting.on_commit(offset if batch.epoch == waiting.epoch else None)
        self._on_applied()

    def on_leadership_gained(self, epoch: int) -> None:
        """Begin to take writes."""
        self.leading_epoch = epoch
        self._on_leading()

    def on_leadership_lost(self, epoch: int) -> None:
        """Answer every waiting writer that the fate of its value cannot be known."""
        del epoch
        self.leading_epoch = None
        waiting, self._waiting = self._waiting, {}
        for several in waiting.values():
            for one in several:
                one.on_commit(None)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Do nothing: clients read the leader from the core."""

    def on_failure(self, error: Exception) -> None:
        """Note that the replica has stopped itself."""
        self.failure = error

    def batches(self) -> Iterator[list[bytes]]:
        """Yield all current values for a snapshot, in batches."""
        values = [encode_record(message, version) for message, version in image_records(self.image)]
        values += (written_value(offset, value) for offset, value in self.values.items())
        for start in range(0, len(values), _RECORDS_PER_BATCH):
            yield values[start : start + _RECORDS_PER_BATCH]


def is_record(value: bytes) -> bool:
    """Return whether a value is a record of the metadata; what clients write begins otherwise."""
    return value[:1] == bytes([FRAME_VERSION])


def with_records(image: MetadataImage, values: Iterable[bytes], offset: int) -> MetadataImage:
    """Return the image after records; those of a snapshot all count as being at its last offset."""
    return image.apply_all((*decode_record(value), offset) for value in values)


def written_value(offset: int, value: bytes) -> bytes:
    """Return the snapshot form of a value, with its offset, which snapshots do not keep."""
    return b"%d|%s" % (offset, value)


def read_value(data: bytes) -> tuple[int, bytes]:
    """Return offset and value from the snapshot form of a value."""
    offset, _, value = data.partition(b"|")
    return int(offset), value
