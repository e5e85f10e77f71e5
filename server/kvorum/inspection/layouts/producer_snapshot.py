"""Producer snapshots: what a log knew of its producers at the offset in the name."""

from __future__ import annotations

from typing import Any, Final

from construct import Array, Container, GreedyBytes, Int16sb, Int32sb, Int32ub, Int64sb, Peek, this

from kvorum.inspection.layouts.fields import named, rule
from kvorum.wire.checksums import crc32c

VERSION: Final = 1

PRODUCER_ENTRY: Final = named(
    producer_id=Int64sb,
    epoch=Int16sb,
    last_sequence=Int32sb,
    last_offset=Int64sb,
    offset_delta=Int32sb,
    timestamp=Int64sb,
    coordinator_epoch=Int32sb,
    current_txn_first_offset=Int64sb,
)
"""A producer's last batch, and where its open transaction began; -1 for what there is not."""


def _problem_of_version(snapshot: Container[Any]) -> str | None:
    version = snapshot.version
    return None if version == VERSION else f"version {version} instead of {VERSION}"


def _problem_of_checksum(snapshot: Container[Any]) -> str | None:
    computed = crc32c(snapshot._covered)
    if computed != snapshot.crc:
        return f"the checksum is {computed}, stored is {snapshot.crc}"
    return None


PRODUCER_SNAPSHOT: Final = named(
    version=Int16sb,
    _version=rule(_problem_of_version),
    crc=Int32ub,
    _covered=Peek(GreedyBytes),
    _checksum=rule(_problem_of_checksum),
    entries_count=Int32sb,
    _entries_count=rule(
        lambda file: f"{file.entries_count} producers" if file.entries_count < 0 else None
    ),
    producer_entries=Array(this.entries_count, PRODUCER_ENTRY),
    _rest=GreedyBytes,
    _end=rule(lambda file: f"{len(file._rest)} bytes follow the last" if file._rest else None),
)
