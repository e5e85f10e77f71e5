"""The signs that a node had not yet written the end of its log to the end."""

from __future__ import annotations

from kvorum.spark.files.batch_places import header_at, header_problem
from kvorum.spark.files.file_window import BLOCK_BYTES, FileWindow
from kvorum.spark.files.legacy_header import message_looks_torn
from kvorum.storage.log.torn_tail import looks_torn


def end_looks_torn(window: FileWindow, position: int, end: int, *, with_legacy: bool) -> bool:
    """Return whether the bytes from `position` to `end`, with no sound batch, are a torn write."""
    size = end - position
    if size <= BLOCK_BYTES:
        rest = window.at(position, size)
        of_message = message_looks_torn(rest) if with_legacy else None
        return looks_torn(rest) if of_message is None else of_message
    # A block that was never written ends in zeros; of a cut batch the header is enough.
    header = header_at(window, position)
    if header is not None and header_problem(header) is None:
        return header.size > size
    return looks_torn(window.at(end - BLOCK_BYTES, BLOCK_BYTES))
