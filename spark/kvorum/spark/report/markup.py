"""Elements of HTML and SVG as text: every text inside is escaped, unless it is `Markup`."""

import html
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

_VOID: Final = frozenset({"meta", "br", "hr"})
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})
"""Categories of characters that change how the text around them is shown, or have no form."""

Content: TypeAlias = "Markup | str | int | Iterable[Markup] | None"
AttributeValue: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML already."""

    html: str


def element(name: str, /, *content: Content, **attributes: AttributeValue) -> Markup:
    """Return an element.

    Attributes are named as in Python: `class_` is class, `aria_label` is aria-label. One that is
    True has no value, one that is None or False is left out.
    """
    begin = f"<{name}{_attributes(attributes)}>"
    return Markup(begin if name in _VOID else f"{begin}{joined(*content).html}</{name}>")


def joined(*content: Content) -> Markup:
    """Return contents one after the other."""
    return Markup("".join(map(_text, content)))


def escaped(text: str) -> str:
    """Return text for HTML, safe in elements and attributes.

    Characters that cannot be seen are written as escapes of Python, so that a name does not look
    like another one.
    """
    return html.escape(visible(text), quote=True)


def visible(text: str) -> str:
    """Return text in which characters that cannot be seen are escapes of Python."""
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode("ascii")
        if unicodedata.category(each) in _INVISIBLE
        else each
        for each in text
    )


def _text(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Markup):
        return content.html
    if isinstance(content, str | int):
        return escaped(str(content))
    return "".join(each.html for each in content)


def _attributes(attributes: dict[str, AttributeValue]) -> str:
    parts: list[str] = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        written = name.rstrip("_").replace("_", "-")
        text = f"{value:g}" if isinstance(value, float) else str(value)
        parts.append(f" {written}" if value is True else f' {written}="{escaped(text)}"')
    return "".join(parts)
