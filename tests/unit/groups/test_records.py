"""Records of `__consumer_offsets` as they are read."""

import pytest

from kvorum.groups.records import (
    OFFSET_COMMIT_VALUE_VERSION,
    CoordinatorRecord,
    DamagedGroupRecordError,
    decode_record,
)
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue


def test_a_value_of_a_later_version_is_refused() -> None:
    """KAFKA-18672: the meaning of its bytes is not known here."""
    key = OffsetCommitKey("group", "topic", 0)
    record = CoordinatorRecord(key, OffsetCommitValue(7), OFFSET_COMMIT_VALUE_VERSION)
    value = record.value_bytes()
    assert value is not None
    assert decode_record(record.key_bytes(), value) == record
    later = (OFFSET_COMMIT_VALUE_VERSION + 1).to_bytes(2, "big") + value[2:]
    with pytest.raises(DamagedGroupRecordError):
        decode_record(record.key_bytes(), later)
