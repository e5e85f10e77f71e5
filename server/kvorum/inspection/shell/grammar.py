"""Command lines by the rules of argparse4j, which reads those of Kafka's shell.

One positional argument, and options that may stand anywhere:

- an option may be abbreviated where only one has this beginning; its value stands behind ``=``, in
  the next word, or, for a short option, in the same word;
- a negative number is not an option; behind ``--`` nothing is one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_NEGATIVE_NUMBER: Final = re.compile(r"-\d+", re.ASCII)
_OPTION: Final = re.compile(r"-+[^-]", re.DOTALL)
SEPARATOR: Final = "--"


class GrammarError(Exception):
    """A command line breaks the rules; the text is the message."""


class HelpAskedError(Exception):
    """A command line asks for help."""


class Count(Enum):
    """The number of words that a positional argument takes."""

    ONE = "one"
    MAYBE = "?"
    ANY = "*"
    SOME = "+"


def any_word(_: str) -> None:
    """Accept any word."""


@dataclass(frozen=True, slots=True)
class Positional:
    """The argument without a flag; `check` raises `GrammarError` for a word that will not do."""

    name: str
    count: Count
    help: str
    check: Callable[[str], None] = any_word

    @property
    def usage(self) -> str:
        """The argument in a usage line."""
        match self.count:
            case Count.ONE:
                return self.name
            case Count.MAYBE:
                return f"[{self.name}]"
            case Count.ANY:
                return f"[{self.name} [{self.name} ...]]"
            case Count.SOME:
                return f"{self.name} [{self.name} ...]"


@dataclass(frozen=True, slots=True)
class Option:
    """An option with a value, or, without a `metavar`, the one that asks for help.

    The name of the value is the last of `flags` that is long, without its dashes.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""

    @property
    def name(self) -> str:
        """The name of the value."""
        long = next(flag for flag in self.flags if flag.startswith("--"))
        return long.removeprefix("--")

    @property
    def usage(self) -> str:
        """The option in a usage line, without brackets."""
        return " ".join(filter(None, (self.flags[0], self.metavar)))

    @property
    def title(self) -> str:
        """All flags of the option, as a help screen lists them."""
        return ", ".join(" ".join(filter(None, (flag, self.metavar))) for flag in self.flags)


HELP: Final = Option(("-h", "--help"), "show this help message and exit")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words that a command line may have."""

    positional: Positional | None = None
    options: tuple[Option, ...] = (HELP,)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The words of the positional argument, and the values of the options by name."""

    words: tuple[str, ...]
    values: dict[str, str]


def is_option(word: str) -> bool:
    """Return whether a word is an option, known or not."""
    return _OPTION.match(word) is not None and _NEGATIVE_NUMBER.fullmatch(word) is None


def parse(grammar: Grammar, words: Sequence[str]) -> Parsed:
    """Return what a command line says; raises `GrammarError` and `HelpAskedError`."""
    reading = _Reading(grammar, list(words))
    reading.read()
    return Parsed(tuple(reading.taken), reading.values)


@dataclass(slots=True)
class _Reading:
    """One command line, on the way from the first word to the last."""

    grammar: Grammar
    words: list[str]
    index: int = 0
    is_separated: bool = False
    taken: list[str] = field(default_factory=list[str])
    values: dict[str, str] = field(default_factory=dict[str, str])

    def read(self) -> None:
        while self.index < len(self.words):
            word = self.words[self.index]
            if word == SEPARATOR and not self.is_separated:
                self.is_separated = True
                self.index += 1
            elif is_option(word) and not self.is_separated:
                self._read_option(word)
            else:
                self._read_word(word)
        positional = self.grammar.positional
        if positional is None:
            return
        if not self.taken and positional.count in (Count.ONE, Count.SOME):
            raise GrammarError("too few arguments")
        for word in self.taken:
            positional.check(word)

    def _read_word(self, word: str) -> None:
        positional = self.grammar.positional
        is_single = positional is not None and positional.count in (Count.ONE, Count.MAYBE)
        if positional is None or (is_single and self.taken):
            raise _unrecognized(" ".join(self.words[self.index :]))
        self.taken.append(word)
        self.index += 1

    def _read_option(self, word: str) -> None:
        flag, is_split, value = word.partition("=")
        option = self._option(flag)
        embedded = value if is_split else None
        if option is None:
            option = self._short_option(word[:2])
            if option is None or word.startswith(SEPARATOR):
                raise _unrecognized(word)
            embedded = word[2:] or None
        self.index += 1
        if not option.metavar:
            if embedded is not None and self._beginning_with(flag):
                text = f"ignore implicit argument '{embedded}'"
                raise GrammarError(f"argument {'/'.join(option.flags)}: {text}")
            raise HelpAskedError
        if embedded is None:
            embedded = self._next_word(option)
        self.values[option.name] = embedded

    def _next_word(self, option: Option) -> str:
        word = self.words[self.index] if self.index < len(self.words) else None
        if word is None or word == SEPARATOR or is_option(word):
            raise GrammarError(f"argument {'/'.join(option.flags)}: expected one argument")
        self.index += 1
        return word

    def _option(self, flag: str) -> Option | None:
        """Return the option of a flag in full or abbreviated; None for none."""
        exact = self._short_option(flag)
        if exact is not None:
            return exact
        matching = self._beginning_with(flag)
        if len(matching) > 1:
            raise GrammarError(f"ambiguous option: {flag} could match {', '.join(matching)}")
        return self._short_option(matching[0]) if matching else None

    def _beginning_with(self, flag: str) -> list[str]:
        flags = (name for option in self.grammar.options for name in option.flags)
        return sorted(name for name in flags if name.startswith(flag))

    def _short_option(self, flag: str) -> Option | None:
        return next((option for option in self.grammar.options if flag in option.flags), None)


def _unrecognized(words: str) -> GrammarError:
    return GrammarError(f"unrecognized arguments: '{words}'")
