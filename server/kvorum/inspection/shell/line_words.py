"""The words of a line, as the line reader of Kafka's shell (JLine) splits it.

Words end at white space. A backslash takes the meaning of the character after it away, and is left
out. A quote at the begin of a word holds everything up to the next one like it together, and is
left out too; inside of a word it does the first, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_QUOTES: Final = "'\""
_ESCAPE: Final = "\\"
# White space for Python, and not for Java.
_NOT_SPACE: Final = "\x85\xa0\u2007\u202f"


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
