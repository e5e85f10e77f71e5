"""A leader's log by a script: batches, high watermark and snapshot, answered as Kafka does."""

from dataclasses import dataclass, field
from random import Random

from tests.spark.streaming.fake_controllers import fetched, led_by
from tests.support.spark.small_logs import START_MS, control, random_batch

from kvorum.metadata.address import Address
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.records import ControlRecordType, RecordBatch, read_batches

CLUSTER = "cluster-a"
_HEADER = ControlRecordType.SNAPSHOT_HEADER
_FOOTER = ControlRecordType.SNAPSHOT_FOOTER


@dataclass
class ScriptedLog:
    """The state of a leader; it is the answers of a `FakeController`."""

    epoch: int = 3
    batches: list[RecordBatch] = field(default_factory=list[RecordBatch])
    high_watermark: int = 0
    start: int = 0
    snapshot: OffsetAndEpoch | None = None
    snapshot_bytes: bytes = b""
    chunk_bytes: int = 1000
    is_writing_refusals: bool = True
    """Whether a refused FetchSnapshot has its error; Kafka 4.3.1 cannot write it."""
    voters: list[Address] = field(default_factory=list[Address])

    def append(self, random: Random, *, count: int, epoch: int | None = None) -> None:
        """Append batches, all of them committed."""
        for _ in range(count):
            data = random_batch(random, offset=self.end, epoch=epoch or self.epoch, time=START_MS)
            self.batches += read_batches(data)
        self.high_watermark = self.end

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start

    def place(self, index: int) -> OffsetAndEpoch:
        epoch = self.batches[index - 1].partition_leader_epoch if index else 0
        return OffsetAndEpoch(self.batches[index].base_offset, epoch)

    def delete_before(self, index: int) -> OffsetAndEpoch:
        """Let a snapshot take the place of the batches before one; return its id."""
        snapshot = self.snapshot = self.place(index)
        self.start = snapshot.offset
        del self.batches[:index]
        header = control(_HEADER, SnapshotHeaderRecord(), offset=0, epoch=2)
        body = random_batch(Random(7), offset=1, epoch=2, time=START_MS)
        end = next(read_batches(body)).next_offset
        footer = control(_FOOTER, SnapshotFooterRecord(), offset=end, epoch=2)
        self.snapshot_bytes = header + body + footer
        return snapshot

    def __call__(self, request: Message) -> Message | None:
        if isinstance(request, DescribeClusterRequest):
            return DescribeClusterResponse(cluster_id=CLUSTER)
        if isinstance(request, DescribeQuorumRequest):
            return DescribeQuorumResponse(nodes=[*map(_node, self.voters)])
        if isinstance(request, FetchSnapshotRequest):
            return self._snapshot(request)
        assert isinstance(request, FetchRequest)
        return self._fetched(request)

    def _fetched(self, request: FetchRequest) -> Message:
        asked = request.topics[0].partitions[0]
        data = FetchResponse.PartitionData(current_leader=led_by(1, self.epoch), records=b"")
        if asked.current_leader_epoch != self.epoch:
            is_old = asked.current_leader_epoch < self.epoch
            data.error_code = (
                ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
            data.high_watermark = -1
            return fetched(data)
        data.high_watermark, data.log_start_offset = self.high_watermark, self.start
        is_gone = asked.fetch_offset < self.start
        if self.snapshot is not None and (is_gone or not asked.fetch_offset):
            data.snapshot_id = FetchResponse.SnapshotId(self.snapshot.offset, self.snapshot.epoch)
            return fetched(data)
        found = [batch for batch in self.batches if batch.next_offset > asked.fetch_offset]
        size, parts = 0, list[bytes]()
        for batch in found:
            if parts and size + batch.size > request.max_bytes:
                break
            parts.append(bytes(batch.data))
            size += batch.size
        data.records = b"".join(parts)
        return fetched(data)

    def _snapshot(self, request: FetchSnapshotRequest) -> Message:
        asked = request.topics[0].partitions[0]
        wanted = OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        data = FetchSnapshotResponse.PartitionSnapshot(
            snapshot_id=FetchSnapshotResponse.SnapshotId(wanted.offset, wanted.epoch),
            position=asked.position,
            unaligned_records=b"",
        )
        if asked.current_leader_epoch < self.epoch:
            data.error_code = ErrorCode.FENCED_LEADER_EPOCH
            data.current_leader.leader_id, data.current_leader.leader_epoch = 1, self.epoch
        elif wanted != self.snapshot:
            data.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        elif asked.position >= len(self.snapshot_bytes):
            data.error_code = ErrorCode.POSITION_OUT_OF_RANGE
        else:
            data.size = len(self.snapshot_bytes)
            end = asked.position + self.chunk_bytes
            data.unaligned_records = self.snapshot_bytes[asked.position : end]
        if data.error_code != ErrorCode.NONE and not self.is_writing_refusals:
            return FetchSnapshotResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        topic = FetchSnapshotResponse.TopicSnapshot("__cluster_metadata", [data])
        return FetchSnapshotResponse(topics=[topic])


def _node(address: Address) -> DescribeQuorumResponse.Node:
    return DescribeQuorumResponse.Node(
        listeners=[DescribeQuorumResponse.Listener("CONTROLLER", *address)]
    )
