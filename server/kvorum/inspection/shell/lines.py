"""The words of a line, and the lines before it, as the line reader of Kafka's shell (JLine) does.

Words end at white space. A backslash takes the meaning of the character after it away, and is left
out. A quote at the begin of a word holds everything up to the next one like it together, and is
left out too; inside of a word it does the first, and stays.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kvorum.wire.java_text import java_trim

_QUOTES: Final = "'\""
_ESCAPE: Final = "\\"
# White space for Python, and not for Java.
_NOT_SPACE: Final = "\x85\xa0\u2007\u202f"
LINES_MAX: Final = 500
_DIGITS_MAX: Final = 10
"""The digits of Java's greatest int; Python would read up to 4,300, and raise from there on."""
# The character after a number is swallowed.
_DESIGNATOR: Final = re.compile(
    r"!(?:(?P<last>!)|(?P<itself>#)|\?(?P<part>[^?]*)\??|(?P<word>\$)|(?P<gap>[ \t])"
    r"|-(?P<back>[0-9]*).?|(?P<number>[0-9]+).?|(?P<start>.+))",
    re.DOTALL,
)
_SUBSTITUTION: Final = re.compile(r"\^([^^]*)\^([^^]*)(?:\^.?)?", re.DOTALL)
# The reader passes over \\u, the four digits after it, and one character more.
_ESCAPED_UNICODE: Final = 7


class _Word(NamedTuple):
    text: str
    start: int


def split_line(line: str) -> list[str]:
    """Return the words of a line; a quote that does not end reaches to the end of the line."""
    return [word.text for word in _words(line) if word.text]


def last_word_start(line: str) -> int:
    """Return where the last word begins, its quote included; the end of the line for none."""
    *_, last = _words(line)
    return last.start


def quoted(word: str, *, like: str, is_complete: bool) -> str:
    """Return how a line has to have a word whose begin it has already, in the form of `like`.

    Behind a complete word comes a space.
    """
    quote = like[0] if like and like[0] in _QUOTES else ""
    special = {_ESCAPE, quote} if quote else {_ESCAPE, *_QUOTES}
    text = "".join(
        f"{_ESCAPE}{character}"
        if character in special or (not quote and _is_space(character))
        else character
        for character in word
    )
    return f"{quote}{text}{quote} " if is_complete else f"{quote}{text}"


def _words(line: str) -> Iterator[_Word]:
    """Yield the words; the last is empty, and begins at the end, where the line ends in a space."""
    text = ""
    start: int | None = None
    quote = ""
    keeps_quote = False
    is_escaped = False
    for place, character in enumerate(line):
        if not quote and not is_escaped and _is_space(character):
            if start is not None:
                yield _Word(text, start)
            text, start = "", None
            continue
        start = place if start is None else start
        if is_escaped:
            text += character
            is_escaped = False
        elif not quote and character in _QUOTES:
            quote, keeps_quote = character, bool(text)
            text += character if keeps_quote else ""
        elif quote == character:
            text += character if keeps_quote else ""
            quote = ""
        elif character == _ESCAPE:
            is_escaped = True
        else:
            text += character
    yield _Word(text, len(line) if start is None else start)


def _is_space(character: str) -> bool:
    return character.isspace() and character not in _NOT_SPACE


class _NoEventError(Exception):
    """A designator of a line that there is not."""


class LineHistory:
    """The last lines, numbered from 0 on.

    A line is not kept where it equals the one before, is empty, or begins with a space.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._count = 0

    def add(self, line: str) -> None:
        """Keep a line, without white space around it."""
        if not line or line.startswith(" "):
            return
        line = java_trim(line)
        if self._lines and self._lines[-1] == line:
            return
        self._lines.append(line)
        self._count += 1

    def last_entries(self, count: int | None) -> Iterator[tuple[int, str]]:
        """Yield the last `count` lines with their numbers, all for None."""
        kept = len(self._lines)
        shown = kept if count is None else max(0, min(count, kept))
        first = self._count - kept
        for index in range(kept - shown, kept):
            yield first + index, self._lines[index]

    def expand(self, line: str) -> str:
        """Return a line with its designators (``!!``, ``!3``, ``!ls``, …) replaced.

        It stays as it is where one of them designates no line.
        """
        try:
            return self._substituted(line) if line.startswith("^") else self._expanded(line)
        except _NoEventError:
            return line

    def _substituted(self, line: str) -> str:
        """Return the last line with one text in place of another, for ``^one^other``."""
        match = _SUBSTITUTION.match(line)
        if match is None:
            return self._expanded(line[1:], expanded="^")
        old, new = match.groups()
        return self._expanded(line[match.end() :], expanded=self._last().replace(old, new))

    def _expanded(self, line: str, expanded: str = "") -> str:
        """Return `expanded`, the begin of the line, and the rest with its designators replaced."""
        place = 0
        is_quoted = False
        while place < len(line):
            character = line[place]
            taken = character
            replacement: str | None = None
            if character == "'":
                is_quoted = not is_quoted
            elif not is_quoted and character == "\\":
                taken = line[
                    place : place + (_ESCAPED_UNICODE if line[place + 1 : place + 2] == "u" else 2)
                ]
            elif not is_quoted and character == "!":
                match = _DESIGNATOR.match(line, place)
                if match is not None:
                    taken = match.group()
                    replacement = self._designated(match, expanded)
            expanded += taken if replacement is None else replacement
            place += len(taken)
        return expanded

    def _designated(self, match: re.Match[str], before: str) -> str:
        """Return the text that a designator stands for."""
        match match.lastgroup:
            case "last":
                return self._last()
            case "itself":
                return before
            case "part":
                part: str = match["part"]
                return self._latest(lambda line: part in line)
            case "word":
                return self._last().strip().rpartition(" ")[2]
            case "gap":
                return match.group()
            case "back":
                return self._numbered(match["back"], is_backward=True)
            case "number":
                return self._numbered(match["number"], is_backward=False)
            case _:
                start: str = match["start"]
                return self._latest(lambda line: line.startswith(start))

    def _last(self) -> str:
        if not self._lines:
            raise _NoEventError
        return self._lines[-1]

    def _numbered(self, digits: str, *, is_backward: bool) -> str:
        """Return the line that is so many lines back, or whose number plus 1 is given."""
        digits = digits.lstrip("0") or "0"
        if len(digits) > _DIGITS_MAX:
            raise _NoEventError
        number = int(digits)
        kept = len(self._lines)
        index = kept - number if is_backward else number - 1 - (self._count - kept)
        if number == 0 or not 0 <= index < kept:
            raise _NoEventError
        return self._lines[index]

    def _latest(self, is_meant: Callable[[str], bool]) -> str:
        for line in reversed(self._lines):
            if is_meant(line):
                return line
        raise _NoEventError
