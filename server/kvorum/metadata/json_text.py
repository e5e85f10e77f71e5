"""JSON as Kafka's tools print it: no spaces, Java's numbers, and Jackson's escapes."""

import re
from json.encoder import encode_basestring
from typing import cast

from kvorum.wire.java_text import java_double_text

_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})")


def json_text(value: object) -> str:
    """Return the text of a value made of dicts, lists, strings, numbers, booleans and None."""
    if isinstance(value, str):
        return _string_text(value)
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        pairs = (f"{_string_text(key)}:{json_text(each)}" for key, each in fields.items())
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(json_text, cast('list[object]', value)))}]"
    if isinstance(value, float):
        return java_double_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _string_text(text: str) -> str:
    """Escape quotes, backslashes and control characters, with upper-case hexadecimal digits."""
    escaped = encode_basestring(text)
    if "\\u" not in escaped:
        return escaped
    return _LOWER_ESCAPE.sub(lambda found: f"{found[1]}\\u{found[2].upper()}", escaped)
