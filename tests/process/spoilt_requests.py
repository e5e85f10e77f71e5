"""Requests that are spoilt: messages with fields as they should not be."""

from typing import Any

# Fields, each named by the way to it; a value that is a function is asked, with what it is about.
Spoilt = dict[str, object]


def spoil(message: Any, spoilt: Spoilt, about: object) -> None:
    """Set fields of a message."""
    for path, value in spoilt.items():
        *steps, last = path.split(".")
        target = message
        for step in steps:
            target = target[int(step)] if step.isdigit() else getattr(target, step)
        setattr(target, last, value(about) if callable(value) else value)


def name_of(spoilt: Spoilt, *, without: str) -> str:
    """Return what is spoilt in a few words, for the name of a test."""
    return ", ".join(f"{path.removeprefix(without)}={_word(what)}" for path, what in spoilt.items())


def _word(what: object) -> str:
    if isinstance(what, bytes):
        return f"{len(what)} times {what[:1].hex()}"
    return getattr(what, "__name__", str(what))
