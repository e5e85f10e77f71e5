"""Errors of a run of the pipeline.

PipelineError
├── OutputInUseError     another run writes to the same output
├── DamagedOutputError   the output is not what the last run left
└── UnreconciledError    counts that must agree do not; nothing is committed
"""

from __future__ import annotations

from kvorum.spark.errors import SparkSliceError


class PipelineError(SparkSliceError):
    """A run cannot go on; the text says where and why."""


class OutputInUseError(PipelineError):
    """Another run writes to the same output."""


class DamagedOutputError(PipelineError):
    """The output is not what the last run left."""


class UnreconciledError(PipelineError):
    """Counts that must agree do not."""
