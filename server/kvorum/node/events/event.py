"""Events worth a line in the log: a sentence, and what it is about as fields.

``_log.info(Event("The broker is fenced", broker=3))`` reads ``The broker is fenced broker=3``, and
in the JSON form of the log the fields are keys of their own.
"""

from __future__ import annotations

import json
from typing import TypeAlias

Field: TypeAlias = str | int | float | bool | None
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@+*[]")


class Event:
    """What happened, as the message of a log record; one whose field is None has it not."""

    __slots__ = ("fields", "sentence")

    def __init__(self, sentence: str, /, **fields: Field) -> None:
        self.sentence = sentence
        self.fields = {name: value for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        return " ".join(
            [self.sentence, *(f"{name}={_text(value)}" for name, value in self.fields.items())]
        )


def _text(value: Field) -> str:
    """Return a value as one word; what has blanks or quotes in it is quoted."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)
