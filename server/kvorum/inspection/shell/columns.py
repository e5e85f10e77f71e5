"""Names laid out in columns, each column as wide as its longest name (LsCommandHandler)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_GAP: Final = 2
_COLUMN_WIDTH_MIN: Final = 4
"""No more columns are tried than columns of this width would fit."""


class ColumnLayout(NamedTuple):
    """The widths of the columns, gaps included, and how many names each of them takes."""

    widths: tuple[int, ...]
    names_per_column: int


def column_lines(names: Sequence[str], screen_width: int | None) -> Iterator[str]:
    """Yield `names` column by column; in a single one if there is not a screen.

    `screen_width` is in characters.
    """
    if not names:
        return
    layout = column_layout(names, screen_width)
    columns = len(layout.widths)
    for line in range(-(-len(names) // columns)):
        row = names[line :: layout.names_per_column][:columns]
        *padded, last = row
        is_full = len(row) == columns
        cells = [_padded(name, width) for name, width in zip(padded, layout.widths, strict=False)]
        cells.append(last if is_full else _padded(last, layout.widths[len(padded)]))
        yield "".join(cells)


def column_layout(names: Sequence[str], screen_width: int | None) -> ColumnLayout:
    """Return the layout of `names`, at least one, that has the most columns.

    It has to fit, and its last column must not be empty; a single column always does.
    """
    columns_max = 1 if screen_width is None else screen_width // _COLUMN_WIDTH_MIN
    for columns in range(columns_max, 1, -1):
        layout = _layout(names, columns)
        assert screen_width is not None
        if layout.widths[-1] and sum(layout.widths) <= screen_width:
            return layout
    return _layout(names, 1)


def _layout(names: Sequence[str], columns: int) -> ColumnLayout:
    per_column = -(-len(names) // columns)
    widths = [
        max((_length(name) + _GAP for name in names[start : start + per_column]), default=0)
        for start in range(0, per_column * columns, per_column)
    ]
    return ColumnLayout(tuple(widths), per_column)


def _padded(name: str, width: int) -> str:
    return name + " " * (width - _length(name))


def _length(text: str) -> int:
    """Return the length in UTF-16 code units, as Java counts."""
    return len(text.encode("utf-16-be", "surrogatepass")) // 2
