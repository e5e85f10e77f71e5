"""The indexes of a segment: entries of one size, back to back.

Kafka sets room aside for the indexes of the active segment: zeros follow their entries.
"""

from __future__ import annotations

from typing import Any, Final

from construct import Container, Int16sb, Int32sb, Int64sb

from kvorum.inspection.layouts.fields import named, rule

OFFSET_ENTRY: Final = named(relative_offset=Int32sb, position=Int32sb)
"""`.index`: a batch's last offset, less the segment's base offset, and where the batch begins."""

TIME_ENTRY: Final = named(timestamp=Int64sb, relative_offset=Int32sb)
"""`.timeindex`: the largest timestamp so far, and the offset that has it, less the base offset."""


def _problem_of_version(entry: Container[Any]) -> str | None:
    return None if entry.version == 0 else f"version {entry.version} instead of 0"


TRANSACTION_ENTRY: Final = named(
    version=Int16sb,
    _version=rule(_problem_of_version),
    producer_id=Int64sb,
    first_offset=Int64sb,
    last_offset=Int64sb,
    last_stable_offset=Int64sb,
)
"""`.txnindex`: an aborted transaction; `last_offset` is that of its marker."""
