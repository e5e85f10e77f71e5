"""Errors that end a query with one of these functions.

RecordFunctionError
├── FunctionArgumentError    arguments that a function cannot take
└── UndecodableRecordError   a record that cannot be decoded, in the mode FAILFAST
"""

from __future__ import annotations


class RecordFunctionError(Exception):
    """A function cannot return its result; the text names the function and the reason."""


class FunctionArgumentError(RecordFunctionError, ValueError):
    """Arguments of a wrong number or type, or an unknown mode."""


class UndecodableRecordError(RecordFunctionError):
    """Bytes that are not a record of the function's topic."""
