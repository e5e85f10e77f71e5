"""Usage lines and help screens as argparse4j has them, and names in columns (LsCommandHandler)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kvorum.inspection.shell.grammar import Grammar, Option, Positional

WIDTH_DEFAULT: Final = 75
_TITLE_WIDTH_MAX: Final = 21
_HELP_INDENT: Final = 25
_OFFSET_MAX: Final = 30
_INDENT_WHERE_LONG: Final = 6
_SPACES: Final = re.compile(" +")
_GAP: Final = 2
_COLUMN_WIDTH_MIN: Final = 4
"""No more columns are tried than columns of this width would fit."""


def usage_lines(program: str, parts: Iterable[str], width: int) -> Iterator[str]:
    """Yield ``usage: program parts``, broken where a part would reach beyond `width`."""
    line = f"usage: {program}"
    indent = " " * len(line)
    if len(line) > _OFFSET_MAX:
        yield line
        line = indent = " " * _INDENT_WHERE_LONG
    is_first = True
    for part in parts:
        if not is_first and len(line) + 1 + len(part) > width:
            yield line
            line = indent
        line = f"{line} {part}"
        is_first = False
    yield line


def grammar_usage(grammar: Grammar) -> list[str]:
    """Return the parts of a usage line; options have brackets."""
    parts = [f"[{option.usage}]" for option in grammar.options]
    return parts if grammar.positional is None else [*parts, grammar.positional.usage]


def grammar_lines(grammar: Grammar, width: int) -> Iterator[str]:
    """Yield the help of the positional argument and of the options."""
    if grammar.positional is not None:
        yield from ("", "positional arguments:")
        yield from argument_lines(grammar.positional, width)
    if grammar.options:
        yield from ("", "optional arguments:")
        for option in grammar.options:
            yield from argument_lines(option, width)


def argument_lines(argument: Positional | Option, width: int) -> Iterator[str]:
    """Yield the help of one argument."""
    title = argument.title if isinstance(argument, Option) else argument.name
    yield from titled_lines(title, argument.help, width)


def titled_lines(title: str, text: str, width: int) -> Iterator[str]:
    """Yield a title and its explanation, which begins in column 25."""
    if not text:
        yield f"  {title}"
        return
    first, *others = wrapped_lines(text, width, indent=_HELP_INDENT)
    indent = " " * _HELP_INDENT
    if len(title) <= _TITLE_WIDTH_MAX:
        yield f"  {title}".ljust(_HELP_INDENT) + first
    else:
        yield f"  {title}"
        yield f"{indent}{first}"
    yield from (f"{indent}{line}" for line in others)


def wrapped_lines(text: str, width: int, *, indent: int = 0) -> list[str]:
    """Return a text in lines that end before column `width`, all but the last one justified.

    `indent` columns are taken already; the lines do not begin with them.
    """
    lines: list[str] = []
    line = ""
    for word in re.findall(r"\S+\s*", text):
        if indent + len(line) + len(word) > width:
            lines.append(_justified(line, width - indent))
            line = ""
        line += word
    return [*lines, line]


def _justified(line: str, width: int) -> str:
    """Return a line with its gaps widened; the middle ones by one more where it does not go even.

    A gap of several spaces counts as one, and keeps them.
    """
    line = line.strip(" ")
    gaps = len(_SPACES.findall(line))
    if gaps == 0:
        return line
    each, rest = divmod(width - len(line), gaps)
    wider = range((gaps - rest + 1) // 2, (gaps - rest + 1) // 2 + rest)
    parts = _SPACES.split(line)
    return parts[0] + "".join(
        gap + " " * (each + (number in wider)) + part
        for number, (gap, part) in enumerate(zip(_SPACES.findall(line), parts[1:], strict=True))
    )


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
