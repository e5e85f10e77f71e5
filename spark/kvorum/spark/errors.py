"""The errors of reading logs and of making tables from them.

SparkSliceError
├── OptionError               an option or a column that does not exist, or contradicts another one
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
    """A source, the pipeline or the report cannot go on; the text says where and why."""


class OptionError(SparkSliceError):
    """An option or a column that does not exist, or that contradicts another one."""


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


class PipelineError(SparkSliceError):
    """A run cannot go on; the text says where and why."""


class OutputInUseError(PipelineError):
    """Another run writes to the same output."""


class DamagedOutputError(PipelineError):
    """The output is not what the last run left."""


class UnreconciledError(PipelineError):
    """Counts that must agree do not."""
