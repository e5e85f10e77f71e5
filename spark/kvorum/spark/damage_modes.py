"""The meaning of damage to a query: one of the three modes of Spark's own readers of files."""

import logging
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, TypeVar

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.spark.errors import DamagedFileError, OptionError

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)


class Mode(Enum):
    """Modes, by the value of the option `mode`.

    FAILFAST raises `DamagedFileError`, and logs a torn tail. PERMISSIVE makes every damage a row.
    DROPMALFORMED logs every damage, and at the end how many there were.
    """

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DROPMALFORMED = "dropmalformed"


def parse_mode(text: str) -> Mode:
    """Return the mode of this name, in any case; `OptionError` for another name."""
    try:
        return Mode(text.strip().lower())
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise OptionError(f"option 'mode' is {text!r}: it is one of {known}") from None


def admit(items: Iterable[T | Damage], mode: Mode) -> Iterator[T | Damage]:
    """Yield the items, and the damage among them only where the mode makes rows of it."""
    dropped = 0
    path = ""
    for item in items:
        if not isinstance(item, Damage) or mode is Mode.PERMISSIVE:
            yield item
            continue
        if mode is Mode.FAILFAST and item.kind is not DamageKind.TORN_TAIL:
            raise DamagedFileError(file=item.path, offset=item.first_offset, reason=item.text)
        _LOG.warning("%s: offset %d: %s", item.path, item.first_offset, item.text)
        dropped, path = dropped + 1, item.path
    if dropped and mode is Mode.DROPMALFORMED:
        _LOG.warning("%s: %d damaged places were left out", path, dropped)
