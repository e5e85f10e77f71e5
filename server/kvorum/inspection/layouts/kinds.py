"""The choice of a file's layout by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.inspection.layouts import text_files
from kvorum.inspection.layouts.fields import Layout
from kvorum.inspection.layouts.indexes import OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY
from kvorum.inspection.layouts.producer_snapshot import PRODUCER_SNAPSHOT
from kvorum.inspection.layouts.text_files import TextLayout
from kvorum.inspection.passing_files import lasting_name


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
