"""The options or sub-commands that a wrong one may stand for, as argparse4j suggests them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_TOO_FAR: Final = 7
_SWAPPED: Final = 0
_REPLACED: Final = 2
_ADDED: Final = 1
_REMOVED: Final = 4


def closest(word: str, names: Mapping[str, str]) -> list[str]:
    """Return the keys of `names` whose values are closest to `word`, none if all are too far."""
    distances = {
        key: 0 if name.startswith(word) else _distance(word, name) for key, name in names.items()
    }
    least = min(distances.values(), default=_TOO_FAR)
    return [] if least >= _TOO_FAR else sorted(key for key in names if distances[key] == least)


def option_names(options: Iterable[str]) -> dict[str, str]:
    """Return the long ones of `options`, with their names without dashes."""
    return {option: option.lstrip("-") for option in options if option.startswith("--")}


def _distance(word: str, name: str) -> int:
    """Return the cost of the changes that turn `word` into `name`; swaps are of neighbours."""
    before: list[int] = []
    last = list(range(len(name) + 1))
    for row, letter in enumerate(word, 1):
        # Letters in front of the name cost less than those within it: argparse4j's peculiarity.
        current = [row]
        for column, wanted in enumerate(name, 1):
            costs = [
                last[column - 1] + (0 if letter == wanted else _REPLACED),
                last[column] + _REMOVED,
                current[column - 1] + _ADDED,
            ]
            crossed = word[row - 2 : row - 1], name[column - 2 : column - 1]
            if letter != wanted and crossed == (wanted, letter):
                costs.append(before[column - 2] + _SWAPPED)
            current.append(min(costs))
        before, last = last, current
    return last[-1]
