"""File names of a metadata log directory and of the folders around it."""

import re
from typing import NamedTuple

from kvorum.wire.offset_and_epoch import OffsetAndEpoch

METADATA_LOG_DIRECTORY = "__cluster_metadata-0"
LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
SNAPSHOT_SUFFIX = ".checkpoint"
PARTIAL_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})(?:-[^.]*)?\.checkpoint(\.part|\.deleted)?")
_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d+)")
_OFFSET_NAME = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")


class SnapshotName(NamedTuple):
    """The parts of a snapshot's file name."""

    name: str
    id: OffsetAndEpoch
    is_partial: bool
    is_deleted: bool


def offset_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file: the offset in twenty digits, and the suffix."""
    return f"{base_offset:020d}{suffix}"


def parse_offset_name(name: str) -> tuple[int, str] | None:
    """Return the offset and suffix of a segment's file name, or None for any other name."""
    found = _OFFSET_NAME.fullmatch(name)
    return None if found is None else (int(found.group(1)), found.group(2))


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """Return the name of a finished snapshot: end offset (exclusive) and epoch."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{SNAPSHOT_SUFFIX}"


def parse_snapshot_name(name: str) -> SnapshotName | None:
    """Return the parts of a snapshot's file name, or None for any other name."""
    found = _SNAPSHOT_NAME.fullmatch(name)
    if found is None:
        return None
    return SnapshotName(
        name=name,
        id=OffsetAndEpoch(offset=int(found.group(1)), epoch=int(found.group(2))),
        is_partial=found.group(3) == PARTIAL_SUFFIX,
        is_deleted=found.group(3) == DELETED_SUFFIX,
    )


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Return topic and number of the partition that a directory's name stands for, or None."""
    found = _PARTITION_DIRECTORY.fullmatch(name)
    return None if found is None else (found.group(1), int(found.group(2)))
