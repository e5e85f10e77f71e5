"""Kafka's SslPrincipalMapper: from a certificate's name to a user's, by rules (KIP-371).

A rule is ``DEFAULT``, the name as it is, or ``RULE:pattern/replacement/`` with an ``L`` or ``U``
after it for lower or upper case. The first rule applies whose pattern matches the whole name.
Patterns are Java's; what Python's expressions lack of them is refused as no pattern.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_PART: Final = r"(?:\\.|[^\\/])*"
"""A pattern or replacement: a slash inside, as any other character, may follow a backslash."""
_RULE: Final = re.compile(
    rf"DEFAULT|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)"
)
_SPLITTER: Final = re.compile(
    rf"\s*(?P<rule>DEFAULT|RULE:{_PART}/{_PART}/.*?|.*?)\s*(?:,\s*|\Z)", re.ASCII
)
_REFERENCE: Final = re.compile(r"\$(?P<number>[0-9]+)")
_BLANKS: Final = "".join(map(chr, range(33)))


class InvalidMappingRuleError(ValueError):
    """A text that is not a rule; the message is Kafka's."""


class NoMappedNameError(Exception):
    """No rule applies to a name, or the one that does has no replacement for it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Failed to map name for '{name}' based on SSL principal mapping rules.")


class _NoReplacementError(Exception):
    """A replacement with a dollar sign that refers to no group."""


class _Rule(NamedTuple):
    """A rule: `pattern` is None for the name as it is; `case` is ``L``, ``U`` or nothing."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def user(self, name: str) -> str | None:
        """Return the user, None where the rule does not apply; raises _NoReplacementError."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        # As in Kafka, every part that matches is replaced, which may be less than the whole.
        mapped = self.pattern.sub(self._replaced, name)
        if self.case == "L":
            return mapped.lower()
        return mapped.upper() if self.case == "U" else mapped

    def _replaced(self, match: re.Match[str]) -> str:
        groups = (match.group(), *(text or "" for text in match.groups()))
        return "".join(_expanded(_with_literals(self.replacement, len(groups) - 1), groups))


class SslPrincipalMapper:
    """The rules of `ssl.principal.mapping.rules`."""

    def __init__(self, text: str) -> None:
        """Read the rules; raises InvalidMappingRuleError."""
        self._rules = tuple(map(_parsed, _split(text.strip(_BLANKS))))

    def name_of(self, distinguished_name: str) -> str:
        """Return the user's name for the subject of a certificate; raises NoMappedNameError."""
        for rule in self._rules:
            try:
                name = rule.user(distinguished_name)
            except _NoReplacementError as error:
                raise NoMappedNameError(distinguished_name) from error
            if name is not None:
                return name
        raise NoMappedNameError(distinguished_name)


def _split(text: str) -> Iterator[str]:
    """Yield the rules of a text; a comma inside a rule does not divide it."""
    for match in _SPLITTER.finditer(text):
        if match["rule"]:
            yield match["rule"]


def _parsed(rule: str) -> _Rule:
    match = _RULE.match(rule)
    end = 0 if match is None else match.end()
    if match is None or end != len(rule):
        raise InvalidMappingRuleError(
            f"Invalid rule: `{rule}`, unmatched substring: `{rule[end:]}`"
        )
    if match["pattern"] is None:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(match["pattern"], re.ASCII)
    except re.error as error:
        raise InvalidMappingRuleError(f"Invalid rule: `{rule}`: {error}") from error
    return _Rule(pattern, match["replacement"], match["case"])


def _with_literals(replacement: str, group_count: int) -> str:
    """Return a replacement in which a reference above the number of groups is literal.

    As in Kafka, the backslash goes to the place that the reference had in the beginning: a second
    such reference stays one, and fails. So does any without a group in the pattern.
    """
    found = replacement
    for match in _REFERENCE.finditer(replacement) if group_count > 0 else ():
        number = int(match["number"])
        while number > group_count and number >= 10:
            number //= 10
        if number > group_count and not match["number"].startswith("0"):
            found = f"{found[: match.start()]}\\{found[match.start() :]}"
    return found


def _expanded(replacement: str, groups: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a replacement, with groups for references, as Java's Matcher does."""
    place = 0
    while place < len(replacement):
        character = replacement[place]
        place += 1
        if character == "$":
            end = _reference_end(replacement, place, len(groups))
            yield groups[int(replacement[place:end])]
            place = end
        elif character == "\\":
            yield replacement[place : place + 1]
            place += 1
        else:
            yield character


def _reference_end(replacement: str, start: int, group_count: int) -> int:
    """Return the end of the longest number of a group; raises _NoReplacementError without one."""
    end = start
    while end < len(replacement) and replacement[end] in "0123456789":
        if int(replacement[start : end + 1]) >= group_count:
            break
        end += 1
    if end == start:
        raise _NoReplacementError
    return end
