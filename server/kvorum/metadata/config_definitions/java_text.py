"""Numbers and durations as Java parses them."""

import math
import re

JAVA_WHITESPACE = "".join(map(chr, range(0x21)))

_INTEGER = re.compile(r"[+-]?\d+\Z")
_DECIMAL = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)\Z"
)
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+[fFdD]?\Z")
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?"
    r"(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?\Z",
    re.IGNORECASE,
)
_SECONDS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def java_trim(text: str) -> str:
    """Strip what Java's String.trim strips: every character up to the space."""
    return text.strip(JAVA_WHITESPACE)


def parse_java_integer(text: str, *, bits: int) -> int:
    """Read a signed integer of `bits` bits as Integer.parseInt does; ValueError otherwise."""
    limit = 1 << (bits - 1)
    # The length bound keeps a hostile run of digits from costing quadratic time.
    if not _INTEGER.match(text) or len(text.lstrip("+-0")) > 20:
        raise ValueError(text[:64])
    number = int(text)
    if not -limit <= number < limit:
        raise ValueError(text)
    return number


def parse_java_double(text: str) -> float:
    """Read a number as Double.parseDouble does (suffixes, hexadecimal); ValueError otherwise."""
    text = java_trim(text)
    if _HEXADECIMAL.match(text):
        return float.fromhex(text.rstrip("fFdD") if "p" in text.lower() else text)
    if not _DECIMAL.match(text):
        raise ValueError(text[:64])
    if text.endswith("NaN"):
        return math.nan
    return float(text.rstrip("fFdD") if not text.endswith("Infinity") else text)


def is_java_duration_from_zero(text: str) -> bool:
    """Return whether Duration.parse accepts `text`, and the duration is not negative."""
    match = _DURATION.match(text)
    if match is None or match["time"] in {"T", "t"}:
        return False
    parts = {name: match[name] for name in _SECONDS if match[name]}
    if not parts or any(len(part) > 18 for part in parts.values()):
        return False
    total = sum(int(part) * _SECONDS[name] for name, part in parts.items())
    fraction = int((match["fraction"] or "").ljust(9, "0"))
    if match["fraction"] and parts["seconds"].startswith("-"):
        fraction = -fraction
    nanoseconds = total * 1_000_000_000 + fraction
    return (-nanoseconds if match["sign"] == "-" else nanoseconds) >= 0
