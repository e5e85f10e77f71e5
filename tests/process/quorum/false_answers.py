"""The lies of a false leader: single fields of its responses, whole frames, versions."""

import struct
from dataclasses import dataclass
from typing import Final

from tests.process.quorum.fake_peer import QUORUM_KEYS, Spoil
from tests.process.spoilt_requests import Spoilt
from tests.support.frame_server import all_versions

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.records import build_data_batch

FALSE_ID: Final = 3
FETCHED: Final = "responses.0.partitions.0."
PART: Final = "topics.0.partitions.0."
NONE: Final[tuple[object, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """The subject of a lie: the sender, and the state."""

    epoch: int
    end_offset: int
    asking_id: int


def batch(lie: Lie, *, offset: int = 0, epoch: int = 0) -> bytes:
    """Return a batch, so far from the end of the log, and of an epoch so far from the leader's."""
    return build_data_batch(
        [b"no metadata record"],
        base_offset=lie.end_offset + offset,
        epoch=lie.epoch + epoch,
        timestamp_ms=1,
    )


def flipped(lie: Lie) -> bytes:
    data = bytearray(batch(lie))
    data[-1] ^= 1
    return bytes(data)


def ahead(lie: Lie) -> bytes:
    return batch(lie, offset=1)


def behind(lie: Lie) -> bytes:
    return batch(lie, offset=-1)


def of_a_later_epoch(lie: Lie) -> bytes:
    return batch(lie, epoch=1)


def of_an_old_epoch(lie: Lie) -> bytes:
    return batch(lie, epoch=-lie.epoch)


def without_records(lie: Lie) -> bytes:
    return batch(lie)[:61]


def of_negative_length(lie: Lie) -> bytes:
    return batch(lie)[:8] + struct.pack(">i", -1) + batch(lie)[12:]


def of_huge_length(lie: Lie) -> bytes:
    return batch(lie)[:8] + struct.pack(">i", 2**31 - 1) + batch(lie)[12:]


def of_an_old_format(lie: Lie) -> bytes:
    return batch(lie)[:16] + b"\x01" + batch(lie)[17:]


def own_id(lie: Lie) -> int:
    return lie.asking_id


def other_id(lie: Lie) -> int:
    return 3 - lie.asking_id


def beyond(lie: Lie) -> int:
    return lie.end_offset + 100


def now(lie: Lie) -> int:
    return lie.epoch


def before(lie: Lie) -> int:
    return lie.epoch - 1


def later(lie: Lie) -> int:
    return lie.epoch + 7


OF_FETCHES: Final[list[Spoilt]] = [
    {"responses": NONE},
    {"responses.0.partitions": NONE},
    {"responses.0.topic_id": bytes(16)},
    {FETCHED + "partition_index": 5},
    {"error_code": ErrorCode.INVALID_REQUEST},
    {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED},
    {"error_code": ErrorCode.INCONSISTENT_CLUSTER_ID},
    {"error_code": 9999},
    {"error_code": -32768},
    {FETCHED + "error_code": ErrorCode.INVALID_REQUEST},
    {FETCHED + "error_code": ErrorCode.FENCED_LEADER_EPOCH},
    {FETCHED + "error_code": ErrorCode.UNKNOWN_LEADER_EPOCH},
    {FETCHED + "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
    {FETCHED + "error_code": 9999},
    {FETCHED + "current_leader.leader_id": own_id},
    {FETCHED + "current_leader.leader_id": other_id},
    {FETCHED + "current_leader.leader_id": 77},
    {FETCHED + "current_leader.leader_id": -5},
    {FETCHED + "current_leader.leader_epoch": before},
    {FETCHED + "current_leader.leader_epoch": -1},
    {FETCHED + "current_leader.leader_epoch": 2**31 - 1},
    {FETCHED + "records": b"\xff" * 200},
    {FETCHED + "records": bytes(200)},
    {FETCHED + "records": flipped},
    {FETCHED + "records": ahead},
    {FETCHED + "records": behind},
    {FETCHED + "records": of_a_later_epoch},
    {FETCHED + "records": of_an_old_epoch},
    {FETCHED + "records": without_records},
    {FETCHED + "records": of_negative_length},
    {FETCHED + "records": of_huge_length},
    {FETCHED + "records": of_an_old_format},
    {FETCHED + "high_watermark": 2**63 - 1},
    {FETCHED + "high_watermark": -(2**63)},
    {FETCHED + "high_watermark": 1},
    {FETCHED + "log_start_offset": 2**63 - 1},
    {FETCHED + "diverging_epoch.epoch": 0, FETCHED + "diverging_epoch.end_offset": 0},
    {FETCHED + "diverging_epoch.epoch": 1, FETCHED + "diverging_epoch.end_offset": 1},
    {FETCHED + "diverging_epoch.epoch": later, FETCHED + "diverging_epoch.end_offset": 0},
    {FETCHED + "diverging_epoch.epoch": 0, FETCHED + "diverging_epoch.end_offset": -7},
    {
        FETCHED + "diverging_epoch.epoch": 2**31 - 1,
        FETCHED + "diverging_epoch.end_offset": 2**63 - 1,
    },
    {FETCHED + "snapshot_id.end_offset": 0, FETCHED + "snapshot_id.epoch": 0},
    {FETCHED + "snapshot_id.end_offset": 1, FETCHED + "snapshot_id.epoch": 1},
    {FETCHED + "snapshot_id.end_offset": -1, FETCHED + "snapshot_id.epoch": 5},
    {FETCHED + "snapshot_id.end_offset": beyond, FETCHED + "snapshot_id.epoch": -1},
    {FETCHED + "snapshot_id.end_offset": beyond, FETCHED + "snapshot_id.epoch": later},
]
OF_SNAPSHOTS: Final[list[Spoilt]] = [
    {"topics": NONE},
    {"error_code": ErrorCode.INVALID_REQUEST},
    {PART + "error_code": ErrorCode.SNAPSHOT_NOT_FOUND},
    {PART + "error_code": ErrorCode.POSITION_OUT_OF_RANGE},
    {PART + "error_code": 9999},
    {PART + "index": 4},
    {PART + "size": 2**63 - 1},
    {PART + "size": 0},
    {PART + "size": -1},
    {PART + "size": 3},
    {PART + "position": 7},
    {PART + "position": -1},
    {PART + "position": 2**63 - 1},
    {PART + "unaligned_records": b""},
    {PART + "unaligned_records": b"\xff" * 64},
    {PART + "unaligned_records": bytes(64)},
    {PART + "snapshot_id.end_offset": 1},
    {PART + "snapshot_id.end_offset": -1},
    {PART + "snapshot_id.epoch": later},
    {PART + "current_leader.leader_id": own_id},
    {PART + "current_leader.leader_epoch": 2**31 - 1},
]
OF_VOTES: Final[list[Spoilt]] = [
    {"topics": NONE},
    {"error_code": ErrorCode.INVALID_REQUEST},
    {"error_code": ErrorCode.UNSUPPORTED_VERSION},
    {"error_code": 9999},
    {PART + "partition_index": 2},
    {PART + "error_code": ErrorCode.INVALID_VOTER_KEY},
    {PART + "error_code": ErrorCode.INVALID_REQUEST},
    {PART + "error_code": 9999},
    {PART + "leader_id": own_id},
    {PART + "leader_id": -9},
    {PART + "leader_epoch": 2**31 - 1},
    {PART + "leader_epoch": -1},
    {PART + "leader_epoch": 0},
    {PART + "leader_id": FALSE_ID, PART + "leader_epoch": later},
]


def garbage(data: bytes) -> bytes:
    return data[:4] + b"\xff" * (len(data) - 4)


def negative_size(data: bytes) -> bytes:
    return struct.pack(">i", -1) + data[4:]


def huge_size(data: bytes) -> bytes:
    return struct.pack(">i", 2**31 - 1) + data[4:]


def no_size(data: bytes) -> bytes:
    return bytes(4) + data


def other_correlation(data: bytes) -> bytes:
    return data[:4] + struct.pack(">i", 77_777) + data[8:]


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def longer(data: bytes) -> bytes:
    return struct.pack(">i", len(data) + 6) + data[4:] + bytes(10)


def shorter(data: bytes) -> bytes:
    return struct.pack(">i", len(data) - 4 - 9) + data[4:-9]


def hangs_up(data: bytes) -> None:
    del data


FRAMES: Final[list[Spoil]] = [
    garbage,
    negative_size,
    huge_size,
    no_size,
    other_correlation,
    half,
    longer,
    shorter,
    hangs_up,
]


def _versions(lowest: int, highest: int) -> ApiVersionsResponse:
    keys = [ApiVersionsResponse.ApiVersion(key, lowest, highest) for key in QUORUM_KEYS]
    return ApiVersionsResponse(api_keys=keys)


VERSIONS: Final = {
    "none": ApiVersionsResponse(),
    "error": ApiVersionsResponse(ErrorCode.INVALID_REQUEST),
    "unsupported": ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION),
    "future": _versions(99, 120),
    "the wrong way round": _versions(5, 1),
    "negative": _versions(-5, -1),
    "no fetch": ApiVersionsResponse(
        api_keys=all_versions(
            [ApiKey.API_VERSIONS, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH]
        )
    ),
}
