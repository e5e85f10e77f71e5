"""Numbers as Java prints them, and lists as it splits them."""

import math
from decimal import Decimal
from typing import Final

_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


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
