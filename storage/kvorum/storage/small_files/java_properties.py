r"""The text format of java.util.Properties: server.properties and meta.properties.

Reading follows java.util.Properties.load: bytes are ISO-8859-1, ``\uXXXX`` escapes, line
continuations, three kinds of separators. Writing follows Properties.store, except that characters
outside printable ASCII are always escaped, so that what is written can be read back.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from kvorum.storage.errors import PropertiesFormatError

_BLANKS = " \t\f"
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_ESCAPED_LETTERS: Mapping[str, str] = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
_LETTERS_TO_ESCAPE: Mapping[str, str] = {"\t": "\\t", "\r": "\\r", "\n": "\\n", "\f": "\\f"}
_FOUR_HEX_DIGITS = re.compile(r"u[0-9a-fA-F]{4}")


def load_java_properties(text: bytes | str) -> dict[str, str]:
    r"""Return the keys and values of a properties file, in file order; a later key wins.

    Raises PropertiesFormatError for a malformed ``\u`` escape, the one thing Java refuses.
    """
    if isinstance(text, bytes):
        text = text.decode("iso-8859-1")
    return dict(_key_and_value(line) for line in _logical_lines(text))


def store_java_properties(properties: Iterable[tuple[str, str]], *, comments: list[str]) -> str:
    """Return the text of a properties file: one ``#`` line per comment, then the pairs."""
    lines = [f"#{comment}" for comment in comments]
    lines += [
        f"{_escaped(key, all_blanks=True)}={_escaped(value, all_blanks=False)}"
        for key, value in properties
    ]
    return "".join(f"{line}\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    """Join continued lines, and leave out blank lines and comments."""
    joined = ""
    continuing = False
    for natural in _LINE_ENDS.split(text):
        line = natural.lstrip(_BLANKS)
        if joined == "" and line[:1] in {"#", "!"}:
            continuing = False
            continue
        continuing = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined += line[:-1] if continuing else line
        if not continuing:
            if joined:
                yield joined
            joined = ""
    if continuing:
        yield joined


def _key_and_value(line: str) -> tuple[str, str]:
    key = _KEY.match(line)
    assert key is not None  # the pattern matches the empty text too
    separator = _SEPARATOR.match(line, key.end())
    assert separator is not None
    return _unescaped(key.group()), _unescaped(line[separator.end() :])


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_one_character, text)
    # Java strings are UTF-16: two escaped surrogates make one character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _one_character(escape: re.Match[str]) -> str:
    body = escape.group(1)
    if not body.startswith("u"):
        return _ESCAPED_LETTERS.get(body, body)
    if not _FOUR_HEX_DIGITS.fullmatch(body):
        raise PropertiesFormatError("Malformed \\uxxxx encoding.")
    return chr(int(body[1:], 16))


def _escaped(text: str, *, all_blanks: bool) -> str:
    pieces: list[str] = []
    for index, character in enumerate(text):
        if character == " ":
            pieces.append("\\ " if all_blanks or index == 0 else " ")
        elif character in "=:#!\\":
            pieces.append(f"\\{character}")
        elif character in _LETTERS_TO_ESCAPE:
            pieces.append(_LETTERS_TO_ESCAPE[character])
        elif " " < character <= "~":
            pieces.append(character)
        else:
            pieces.append(_unicode_escape(character))
    return "".join(pieces)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04X}" for at in range(0, len(units), 2))
