"""The two kinds of batch that a metadata log and its snapshots are made of."""

from collections.abc import Iterable

from kvorum.wire.records.batch import BatchOptions, build_batch
from kvorum.wire.records.control import ControlRecord, encode_control_record
from kvorum.wire.records.record import RecordData


def build_data_batch(
    values: Iterable[bytes], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytes:
    """Return a batch of metadata records, given by their framed values, all of one time."""
    records = [RecordData(value, None, timestamp_ms) for value in values]
    return build_batch(records, BatchOptions(base_offset=base_offset, partition_leader_epoch=epoch))


def build_control_batch(
    controls: Iterable[ControlRecord], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytes:
    """Return a batch of control records, all of one time."""
    return build_batch(
        [encode_control_record(control, timestamp_ms) for control in controls],
        BatchOptions(base_offset=base_offset, partition_leader_epoch=epoch, is_control=True),
    )
