"""Records of ``__share_group_state`` (ShareCoordinatorRecordHelpers, ShareCoordinatorRecordSerde).

They have the schemas ShareSnapshotKey and -Value, ShareUpdateKey and -Value.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.coordinator.record import (
    KEY_VERSION,
    CoordinatorRecord,
    DamagedRecordError,
    decoded,
    record_type,
    value_version,
)
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.share_coordinator.persister_state_batch import persister_state_batches
from kvorum.share_coordinator.share_group_offset import ShareGroupOffset
from kvorum.wire.messages.share_snapshot_key import ShareSnapshotKey
from kvorum.wire.messages.share_snapshot_value import ShareSnapshotValue
from kvorum.wire.messages.share_update_key import ShareUpdateKey
from kvorum.wire.messages.share_update_value import ShareUpdateValue
from kvorum.wire.primitives import Message

_MESSAGES: Final[Mapping[int | None, tuple[type[Message], type[Message]]]] = MappingProxyType(
    {
        ShareSnapshotKey.API_KEY: (ShareSnapshotKey, ShareSnapshotValue),
        ShareUpdateKey.API_KEY: (ShareUpdateKey, ShareUpdateValue),
    }
)
"""The messages of keys and values, by the number of the record's type."""


def share_snapshot_record(key: SharePartitionKey, state: ShareGroupOffset) -> CoordinatorRecord:
    """Return the record with the whole state of a share partition."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=[ShareSnapshotValue.StateBatch(*one) for one in state.state_batches],
    )
    return CoordinatorRecord(ShareSnapshotKey(*key), value)


def share_update_record(key: SharePartitionKey, change: ShareGroupOffset) -> CoordinatorRecord:
    """Return the record that changes the state; of `change` it has no state epoch and no time."""
    value = ShareUpdateValue(
        snapshot_epoch=change.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.delivery_complete_count,
        state_batches=[ShareUpdateValue.StateBatch(*one) for one in change.state_batches],
    )
    return CoordinatorRecord(ShareUpdateKey(*key), value)


def share_state_tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Return the record that ends the state of a share partition."""
    return CoordinatorRecord(ShareSnapshotKey(*key))


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Return a record of the log; None for one of a type that the reference does not know.

    Raises `DamagedRecordError` for bytes that cannot be read, and for an update without a value.
    """
    messages = _MESSAGES.get(record_type(key))
    if messages is None:
        return None
    key_type, value_type = messages
    decoded_key = decoded(key_type, key, KEY_VERSION)
    if value is not None:
        version = value_version(value)
        return CoordinatorRecord(decoded_key, decoded(value_type, value, version), version)
    if key_type is ShareUpdateKey:
        raise DamagedRecordError("an update of a share partition has no value")
    return CoordinatorRecord(decoded_key)


def share_partition_key(key: ShareSnapshotKey | ShareUpdateKey) -> SharePartitionKey:
    """Return the share partition of a record."""
    return SharePartitionKey(key.group_id, key.topic_id, key.partition)


def state_of_snapshot(value: ShareSnapshotValue) -> ShareGroupOffset:
    """Return the state that a snapshot has."""
    return ShareGroupOffset(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=persister_state_batches(value.state_batches),
        create_timestamp_ms=value.create_timestamp,
        write_timestamp_ms=value.write_timestamp,
    )


def state_of_update(value: ShareUpdateValue) -> ShareGroupOffset:
    """Return the state that an update makes of nothing."""
    return ShareGroupOffset(
        snapshot_epoch=value.snapshot_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=persister_state_batches(value.state_batches),
    )
