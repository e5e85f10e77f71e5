"""Lines, numbers, durations and lists as Java reads and prints them."""

import math
import re
from decimal import Decimal
from typing import Final

_LINE_ENDS: Final = re.compile(r"\r\n|\r|\n")
JAVA_BLANKS: Final = " \t\x0b\f"
"""The blanks that a line can have, as Java's regular expressions take them."""
_BLANKS: Final = re.compile(f"[{JAVA_BLANKS}]+")
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
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


def java_lines(data: bytes) -> list[str]:
    """Return the lines of a text as BufferedReader.readLine does: no end is needed.

    Raises UnicodeDecodeError for what is not UTF-8.
    """
    lines = _LINE_ENDS.split(data.decode())
    if not lines[-1]:
        lines.pop()
    return lines


def java_fields(line: str) -> list[str]:
    """Split a line at its blanks as String.split does: those at the end have no effect."""
    return _BLANKS.split(line.rstrip(JAVA_BLANKS))


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
    try:
        return parse_java_duration_ns(text) >= 0
    except ValueError:
        return False


def parse_java_duration_ns(text: str) -> int:
    """Read a duration in nanoseconds as Duration.parse does; ValueError otherwise."""
    match = _DURATION.match(text)
    if match is None or match["time"] in {"T", "t"}:
        raise ValueError(text[:64])
    parts = {name: match[name] for name in _SECONDS if match[name]}
    if not parts or any(len(part) > 18 for part in parts.values()):
        raise ValueError(text[:64])
    total = sum(int(part) * _SECONDS[name] for name, part in parts.items())
    fraction = int((match["fraction"] or "").ljust(9, "0"))
    if match["fraction"] and parts["seconds"].startswith("-"):
        fraction = -fraction
    nanoseconds = total * 1_000_000_000 + fraction
    return -nanoseconds if match["sign"] == "-" else nanoseconds


def java_double_text(number: float) -> str:
    """Write a number as Double.toString does."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    if _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        plain = f"{Decimal(repr(number)):f}"
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    if len(digits) == 1:
        # Java prints at least two digits, and the nearest such number may differ: 4.9E-324.
        sign, digits, exponent = Decimal(f"{number:.1e}").as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{power}"


def java_split(text: str) -> list[str]:
    """Split at commas as Java's String.split does: without empty parts at the end."""
    if not text:
        return [""]
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return parts
