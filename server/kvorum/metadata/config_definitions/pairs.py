"""Values that are lists of pairs, as ``name:value,name:value``."""

import re
from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError

_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)


def parse_map(key: str, text: str) -> dict[str, str]:
    """Read ``name:value`` pairs, comma separated; the last colon of a pair divides it.

    Raises InvalidConfigError for a pair without a colon.
    """
    pairs: dict[str, str] = {}
    for pair in _COMMA.split(text) if text else ():
        name, colon, value = pair.rpartition(":")
        if not colon:
            raise InvalidConfigError(
                f"Error parsing configuration property '{key}': begin 0, end -1, length {len(pair)}"
            )
        pairs[name.strip()] = value.strip()
    return pairs
