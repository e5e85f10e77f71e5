"""The errors of folding a metadata log into its history.

HistoryError              the log has no consistent history
├── MissingOffsetsError   records are missing before the one that was given
├── ContradictionError    a record contradicts the records before it
└── SavedHistoryError     a saved history is damaged, or of another version
"""

from functools import partial


class HistoryError(Exception):
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
        return partial(type(self), expected=self.expected, found=self.found), ()


class ContradictionError(HistoryError):
    """The record at `offset` cannot follow the records before it."""

    def __init__(self, *, offset: int, reason: str) -> None:
        super().__init__(f"the record at offset {offset} cannot be applied: {reason}")
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling between processes, which keyword-only arguments would prevent."""
        return partial(type(self), offset=self.offset, reason=self.reason), ()


class SavedHistoryError(HistoryError):
    """The bytes are not a history that this release saved."""
