"""A function over columns of bytes: what it is called, takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kvorum.spark.functions.columns import Column, Row
from kvorum.spark.functions.errors import FunctionArgumentError


class Mode(Enum):
    """The consequence of a record that cannot be decoded, in Spark's own words.

    With `PERMISSIVE` the result has the reason in `error`; with `FAILFAST` the query fails.
    """

    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"


@dataclass(frozen=True, slots=True)
class RecordFunction:
    """A function of SQL; `row` takes one value for each of `arguments`, bytes or None."""

    name: str
    arguments: tuple[str, ...]
    columns: tuple[Column, ...]
    row: Callable[..., Row | None]


def mode_of(text: str | None) -> Mode:
    """Return the mode that a text names, in upper or lower case."""
    try:
        return Mode((text or "").upper())
    except ValueError:
        known = " or ".join(mode.value for mode in Mode)
        raise FunctionArgumentError(f"unknown mode {text!r}: it must be {known}") from None
