"""The parser of kvorum's own commands, which suggests an option in place of an unknown one.

Commands that Kafka has as well are parsed as Kafka's tools do it: `kvorum.cli.kafka_arguments`.
"""

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

END_OF_OPTIONS = "--"
OPTION_PREFIX = "--"


class CommandParser(argparse.ArgumentParser):
    """A parser of a command, or of one of its subcommands, that refuses unknown words itself.

    argparse has the outermost parser refuse them, with that one's usage, and after it has
    complained of the options that are missing.
    """

    def parse_known_args(  # type: ignore[override]  # argparse has an overload for each namespace
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Return the values of the arguments; there are no others, or the process ends."""
        words = sys.argv[1:] if args is None else args
        for name in self._unknown_options(words):
            self.error(f"unrecognized arguments: {name}{self._suggestion(name)}")
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _unknown_options(self, words: Sequence[str]) -> list[str]:
        """Return the long options that the parser does not know, in full or by their beginning."""
        if self._subparsers is not None or self._takes_every_word():
            # They may be of a subcommand, or of a tool of Kafka's, with rules of its own.
            return []
        before_end = takewhile(lambda word: word != END_OF_OPTIONS, words)
        names = [word.partition("=")[0] for word in before_end if word.startswith(OPTION_PREFIX)]
        return [
            name
            for name in names
            if not any(option.startswith(name) for option in self._option_string_actions)
        ]

    def _takes_every_word(self) -> bool:
        return any(action.nargs == argparse.REMAINDER for action in self._actions)

    def _suggestion(self, name: str) -> str:
        """Return the question whether another option is meant, where one is spelled alike."""
        options = {option.lstrip("-"): option for option in self._option_string_actions}
        nearest = get_close_matches(name.lstrip("-"), options, n=1)
        return f"; did you mean {options[nearest[0]]}?" if nearest else ""
