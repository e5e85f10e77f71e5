"""Values that are lists of pairs, as ``name:value,name:value``."""

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.values import parse_list


def parse_map(key: str, text: str) -> dict[str, str]:
    """Read ``name:value`` pairs, comma separated; the last colon of a pair divides it.

    Raises InvalidConfigError for a pair without a colon.
    """
    pairs: dict[str, str] = {}
    for pair in parse_list(text):
        name, colon, value = pair.rpartition(":")
        if not colon:
            raise InvalidConfigError(
                f"Error parsing configuration property '{key}': begin 0, end -1, length {len(pair)}"
            )
        pairs[name.strip()] = value.strip()
    return pairs
