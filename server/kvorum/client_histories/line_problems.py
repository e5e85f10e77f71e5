"""The problem with a line that the reader of histories could not take, in words."""

from collections.abc import Iterator
from typing import Any, Final

TYPES: Final = ("invoke", "ok", "fail", "info")
FUNCTIONS: Final = ("send", "poll", "txn", "assign", "subscribe", "crash")
NUMBERS: Final = {"i": "the place of the line", "p": "the process", "t": "the time"}
INTEGER_MIN: Final = -(1 << 63)
INTEGER_MAX: Final = (1 << 63) - 1
_SHOWN_MAX: Final = 60
"""Longer pieces of a line are cut."""
_TOO_DEEP: Final = "something that is nested too deeply"


def problem_of(line: Any) -> str | None:
    """Return the first problem with an object that is a line of a history, or None without any."""
    return next(_problems(line), None)


def _problems(line: Any) -> Iterator[str]:
    if not _is_object(line):
        yield f"it is {_shown(line)}, and not an object"
        return
    for name, meaning in NUMBERS.items():
        if not _is_integer(line.get(name, 0 if name == "i" else None)):
            yield f"{name}, {meaning}, is {_field(line, name)}, and not an integer of 64 bits"
    for name, known in (("type", TYPES), ("f", FUNCTIONS)):
        if line.get(name) not in known:
            yield f"{name} is {_field(line, name)}, and not one of {', '.join(known)}"
    yield from _problems_of_value(line)
    rebalanced = line.get("rebalanced", [])
    if _is_list(rebalanced):
        yield from _problems_of_keys("rebalanced", rebalanced)
    else:
        yield f"rebalanced is {_shown(rebalanced)}, and not a list of keys"


def _problems_of_value(line: dict[str, Any]) -> Iterator[str]:
    value = line.get("v", [])
    if not _is_list(value):
        yield f"v is {_shown(value)}, and not a list"
    elif line["f"] in {"assign", "subscribe"}:
        yield from _problems_of_keys("v", value)
    elif line["f"] == "crash":
        return
    elif "v" not in line and line["type"] == "ok":
        yield "v is missing, which a completion of type ok must have"
    else:
        for step in value:
            yield from _problems_of_step(step, line["f"])


def _problems_of_keys(name: str, keys: list[Any]) -> Iterator[str]:
    for key in keys:
        if not _is_key(key):
            yield f"{name} has the key {_shown(key)}, and a key is an integer or a text"


def _problems_of_step(step: Any, function: str) -> Iterator[str]:
    allowed = {"send": ("send",), "poll": ("poll",)}.get(function, ("send", "poll"))
    if not _is_list(step) or not step or step[0] not in allowed:
        yield f"v has {_shown(step)}, and not only steps of {' and '.join(allowed)}"
    elif step[0] == "send":
        yield from _problems_of_send(step)
    else:
        yield from _problems_of_poll(step)


def _problems_of_send(step: list[Any]) -> Iterator[str]:
    is_known = len(step) == len(("send", "key", "value")) and _is_key(step[1])
    if is_known and (_is_integer(step[2]) or _is_record(step[2], is_sent=True)):
        return
    yield (
        f'v has {_shown(step)}, and a send is ["send", key, value], '
        'or ["send", key, [offset or null, value]]'
    )


def _problems_of_poll(step: list[Any]) -> Iterator[str]:
    if len(step) == len(("poll",)):
        return
    polled = step[1]
    if len(step) > len(("poll", "records")) or not _is_object(polled):
        yield (
            f'v has {_shown(step)}, and a poll is ["poll"], '
            'or ["poll", {"key": [[offset, value], …], …}]'
        )
        return
    for key, records in polled.items():
        if not _is_list(records) or not all(map(_is_record, records)):
            yield f"a poll has {_shown(records)} for key {key}, and not pairs of offset and value"


def _is_object(found: Any) -> bool:
    return isinstance(found, dict)


def _is_list(found: Any) -> bool:
    return isinstance(found, list)


def _is_key(found: Any) -> bool:
    return isinstance(found, str) or _is_integer(found)


def _is_integer(found: Any) -> bool:
    is_number = isinstance(found, int) and not isinstance(found, bool)
    return is_number and INTEGER_MIN <= found <= INTEGER_MAX


def _is_record(found: Any, *, is_sent: bool = False) -> bool:
    """Return whether a piece of a line is a pair of an offset and a value."""
    if not _is_list(found) or len(found) != len(("offset", "value")):
        return False
    offset, value = found
    is_offset = (_is_integer(offset) and offset >= 0) or (is_sent and offset is None)
    return is_offset and _is_integer(value)


def _field(line: dict[str, Any], name: str) -> str:
    return _shown(line[name]) if name in line else "missing"


def _shown(found: Any) -> str:
    try:
        text = repr(found)
    except RecursionError:
        return _TOO_DEEP
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
