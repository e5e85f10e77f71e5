"""The choice of a file's layout by its name, with the indexes and producer snapshots themselves.

Kafka sets room aside for the indexes of the active segment: zeros follow their entries.
"""

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from construct import Array, Container, GreedyBytes, Int16sb, Int32sb, Int32ub, Int64sb, Peek, this

from kvorum.inspection.layouts import text_files
from kvorum.inspection.layouts.record_batch import Layout, named, rule
from kvorum.inspection.layouts.text_files import TextLayout
from kvorum.inspection.reading import lasting_name
from kvorum.wire.checksums import crc32c

OFFSET_ENTRY: Final = named(relative_offset=Int32sb, position=Int32sb)
"""`.index`: a batch's last offset, less the segment's base offset, and where the batch begins."""

TIME_ENTRY: Final = named(timestamp=Int64sb, relative_offset=Int32sb)
"""`.timeindex`: the largest timestamp so far, and the offset that has it, less the base offset."""

SNAPSHOT_VERSION: Final = 1

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


def _version_rule(wanted: int) -> Layout:
    return rule(
        lambda read: (
            None if read.version == wanted else f"version {read.version} instead of {wanted}"
        )
    )


TRANSACTION_ENTRY: Final = named(
    version=Int16sb,
    _version=_version_rule(0),
    producer_id=Int64sb,
    first_offset=Int64sb,
    last_offset=Int64sb,
    last_stable_offset=Int64sb,
)
"""`.txnindex`: an aborted transaction; `last_offset` is that of its marker."""


def _problem_of_checksum(snapshot: Container[Any]) -> str | None:
    computed = crc32c(snapshot._covered)
    if computed != snapshot.crc:
        return f"the checksum is {computed}, stored is {snapshot.crc}"
    return None


PRODUCER_SNAPSHOT: Final = named(
    version=Int16sb,
    _version=_version_rule(SNAPSHOT_VERSION),
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


class FileForm(Enum):
    """The structure of a file."""

    LOG = "entries of a log"
    INDEX = "entries of one size"
    WHOLE = "one structure"
    TEXT = "text"


class FileLayout(NamedTuple):
    """The layout of a file: `layout` of each index entry or of the whole, `text` of a text.

    `entry_size` is in bytes, of an index.
    """

    form: FileForm
    layout: Layout | None = None
    entry_size: int = 0
    text: TextLayout | None = None


_LOG: Final = FileLayout(FileForm.LOG)
_BY_ENDING: Final[Mapping[str, FileLayout]] = MappingProxyType(
    {
        ".log": _LOG,
        ".checkpoint": _LOG,
        ".index": FileLayout(FileForm.INDEX, OFFSET_ENTRY, 8),
        ".timeindex": FileLayout(FileForm.INDEX, TIME_ENTRY, 12),
        ".txnindex": FileLayout(FileForm.INDEX, TRANSACTION_ENTRY, 34),
        ".snapshot": FileLayout(FileForm.WHOLE, PRODUCER_SNAPSHOT),
    }
)
_OFFSETS: Final = FileLayout(FileForm.TEXT, text=text_files.OFFSET_CHECKPOINT)
_BY_NAME: Final[Mapping[str, FileLayout]] = MappingProxyType(
    {
        "leader-epoch-checkpoint": FileLayout(
            FileForm.TEXT, text=text_files.leader_epoch_checkpoint
        ),
        "recovery-point-offset-checkpoint": _OFFSETS,
        "log-start-offset-checkpoint": _OFFSETS,
        "replication-offset-checkpoint": _OFFSETS,
        "cleaner-offset-checkpoint": _OFFSETS,
        "quorum-state": FileLayout(FileForm.TEXT, text=text_files.quorum_state),
        "partition.metadata": FileLayout(FileForm.TEXT, text=text_files.PARTITION_METADATA),
        "meta.properties": FileLayout(FileForm.TEXT, text=text_files.meta_properties),
        "kvorum-flushed-offset": FileLayout(FileForm.TEXT, text=text_files.flushed_offset),
        ".kafka_cleanshutdown": FileLayout(FileForm.TEXT, text=text_files.CLEAN_SHUTDOWN),
    }
)


def layout_of(name: str) -> FileLayout | None:
    """Return the layout of a file by its name without directories; None for an unknown one."""
    # A file that is about to be removed or put in place still has its layout.
    name = lasting_name(name)
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    ending = re.search(r"\.[a-z]+\Z", name)
    return None if ending is None else _BY_ENDING.get(ending.group())
