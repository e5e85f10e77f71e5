"""Errors that are raised while a metadata log is folded into rows of history.

HistoryError
├── MissingOffsetsError   records are missing before the one that was given
├── ContradictionError    a record contradicts the records before it
└── SavedHistoryError     a saved history is damaged, or of another version
"""

from __future__ import annotations

from kvorum.spark.errors import SparkSliceError


class HistoryError(SparkSliceError):
    """A metadata log has no consistent history; the text says where and why."""


class MissingOffsetsError(HistoryError):
    """The record at `found` was given where the one at `expected` must follow."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(
            f"the next record of the log must be at offset {expected}, but the one at {found} came"
        )
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling between processes, which keyword-only arguments would prevent."""
        return _missing_offsets_error, (self.expected, self.found)


class ContradictionError(HistoryError):
    """The record at `offset` cannot follow the records before it."""

    def __init__(self, *, offset: int, reason: str) -> None:
        super().__init__(f"the record at offset {offset} cannot be applied: {reason}")
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling between processes, which keyword-only arguments would prevent."""
        return _contradiction_error, (self.offset, self.reason)


class SavedHistoryError(HistoryError):
    """The bytes are not a history that this release saved."""


def _missing_offsets_error(expected: int, found: int) -> MissingOffsetsError:
    return MissingOffsetsError(expected=expected, found=found)


def _contradiction_error(offset: int, reason: str) -> ContradictionError:
    return ContradictionError(offset=offset, reason=reason)
