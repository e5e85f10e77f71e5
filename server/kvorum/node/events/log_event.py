"""Events that are logged: a sentence, and its details as fields.

``_log.info(LogEvent("The broker is fenced", broker=3))`` reads ``The broker is fenced broker=3``,
and in the JSON form of the log the fields are keys of their own.
"""

import json
from typing import TypeAlias

Field: TypeAlias = str | int | float | bool | None
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@+*[]")
INTERVAL_MS = 10_000
"""The least time between two reported events."""


class LogEvent:
    """An event as the message of a log record; a field that is None is left out."""

    __slots__ = ("fields", "sentence")

    def __init__(self, sentence: str, /, **fields: Field) -> None:
        self.sentence = sentence
        self.fields = {name: value for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        return " ".join(
            [self.sentence, *(f"{name}={_text(value)}" for name, value in self.fields.items())]
        )


def _text(value: Field) -> str:
    """Return a value as one word; a value with blanks or quotes in it is quoted."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)


class RareEvents:
    """Limits how often an event is logged, and counts the suppressed ones in between."""

    __slots__ = ("_reported_at_ms", "_suppressed_count")

    def __init__(self) -> None:
        self._reported_at_ms: float | None = None
        self._suppressed_count = 0

    def happened(self, now_ms: float) -> int | None:
        """Return how many events were suppressed before this one; None if this one is, too."""
        reported_at_ms = self._reported_at_ms
        if reported_at_ms is not None and now_ms < reported_at_ms + INTERVAL_MS:
            self._suppressed_count += 1
            return None
        suppressed_count, self._suppressed_count = self._suppressed_count, 0
        self._reported_at_ms = now_ms
        return suppressed_count
