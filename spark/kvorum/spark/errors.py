"""The errors of reading logs and of making tables from them.

SparkSliceError
├── OptionError               an option or a column that does not exist, or contradicts another one
├── QuorumError               controllers cannot be reached, or are not those of the checkpoint
├── HistoryError              a metadata log has no consistent history
│   ├── MissingOffsetsError   records are missing before the one that was given
│   ├── ContradictionError    a record contradicts the records before it
│   └── SavedHistoryError     a saved history is damaged, or of another version
└── PipelineError             a run of the pipeline cannot go on
    ├── OutputInUseError      another run writes to the same output
    ├── DamagedOutputError    the output is not what the last run left
    └── UnreconciledError     counts that must agree do not; nothing is committed
LogFilesError                 a path holds no usable files (`kvorum.log_files`)
└── DamagedFileError          a file is damaged, or of an unknown format
"""

from functools import partial

from kvorum.log_files.errors import LogFilesError


class SparkSliceError(Exception):
    """Reading files of a log failed; the text says where and why."""


class OptionError(SparkSliceError):
    """An option or a column that does not exist, or that contradicts another one."""


class QuorumError(SparkSliceError):
    """Controllers that cannot be reached, or whose log is not the one of the checkpoint."""


class DamagedFileError(LogFilesError):
    """A file is damaged, or of a format newer than this reader."""

    def __init__(self, *, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file}: damaged at offset {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling between processes, which keyword-only arguments would prevent."""
        return partial(type(self), file=self.file, offset=self.offset, reason=self.reason), ()


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


class PipelineError(SparkSliceError):
    """A run cannot go on; the text says where and why."""


class OutputInUseError(PipelineError):
    """Another run writes to the same output."""


class DamagedOutputError(PipelineError):
    """The output is not what the last run left."""


class UnreconciledError(PipelineError):
    """Counts that must agree do not."""
