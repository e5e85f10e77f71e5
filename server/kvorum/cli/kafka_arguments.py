"""Command lines parsed as Kafka's tools parse them, with their messages and exit codes."""

import argparse
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NoReturn

from kvorum.wire.java_text import parse_java_integer

METAVARS: Final = MappingProxyType(
    {
        "bootstrap_server": "HOST:PORT,...",
        "bootstrap_controller": "HOST:PORT,...",
        "command_config": "FILE",
        "config": "FILE",
        "id": "ID",
        "node_id": "ID",
        "cluster_id": "ID",
        "controller_id": "ID",
        "controller_directory_id": "ID",
        "feature": "NAME=LEVEL",
        "metadata": "VERSION",
        "release_version": "VERSION",
        "add_scram": "CREDENTIAL",
        "initial_controllers": "ID@HOST:PORT:DIRECTORY_ID,...",
    }
)
"""The values of options that Kafka's tools have too, by option."""
CONNECTION_EPILOG: Final = (
    "--bootstrap-server, --bootstrap-controller and --command-config stand before the sub-command "
    "or after it."
)
"""The help of sub-commands whose tool has these options itself."""
_REQUIRED = re.compile(r"the following arguments are required: (?P<first>[^,]+)")
_UNREADABLE = re.compile(r"\[Errno .*: (?P<file>'.*')\Z")
_UNRECOGNIZED = "unrecognized arguments: "
_CHOICES = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<choices>.*)\)")
_AMBIGUOUS = re.compile(r"ambiguous option: (?P<word>\S+) could match (?P<options>.*)\Z")
_TOO_FAR: Final = 7
_SWAPPED: Final = 0
_REPLACED: Final = 2
_ADDED: Final = 1
_REMOVED: Final = 4


class UsageError(Exception):
    """A wrong command line; the usage has been printed already."""


class _Help(argparse.HelpFormatter):
    """A help screen that calls values what they are in the help of every command."""

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        return METAVARS.get(action.dest) or super()._get_default_metavar_for_optional(action)


class KafkaStyleParser(argparse.ArgumentParser):
    """A parser that reports wrong usage as Kafka's tools do: one message, and never exit code 2."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        return _Help(self.prog)

    def error(self, message: str) -> NoReturn:
        """Print the usage, the message and what may have been meant, and raise UsageError."""
        self.complain(_kafka_message(message), self._suggestions(message))
        raise UsageError

    def complain(self, message: str, suggestions: Sequence[str] = ()) -> None:
        """Print the usage, and the message in Kafka's words."""
        self.print_usage(sys.stderr)
        # The message names the whole tool, also for the arguments of a sub-command.
        program = " ".join(self.prog.split()[:2])
        sys.stderr.write(f"{program}: error: {message}\n")
        if suggestions:
            listed = "".join(f"\t{suggestion}\n" for suggestion in suggestions)
            sys.stderr.write(f"\nDid you mean:\n{listed}")

    def _suggestions(self, message: str) -> list[str]:
        """Return the options or sub-commands that an unknown one may stand for."""
        if (choices := _CHOICES.search(message)) is not None:
            names = _names_in(choices["choices"])
            is_ambiguous = bool(_matching(choices["word"], names))
            return [] if is_ambiguous else closest(choices["word"], {name: name for name in names})
        if not message.startswith(_UNRECOGNIZED):
            return []
        word = _unrecognized(message.removeprefix(_UNRECOGNIZED)).lstrip("-")
        is_option = message.startswith(f"{_UNRECOGNIZED}-") and len(word) > 1
        options = [each for each in self._option_string_actions if each.startswith("--")]
        return closest(word, {each: each.lstrip("-") for each in options}) if is_option else []


@dataclass(frozen=True, slots=True)
class ToolParser:
    """The parser of a tool's whole command line, and those of its sub-commands by name."""

    main: KafkaStyleParser
    commands: Mapping[str, KafkaStyleParser]


def parse_in_kafkas_order(
    build: Callable[[bool], ToolParser],
    arguments: Sequence[str],
    *,
    options_with_value: Collection[str] = (),
) -> argparse.Namespace:
    """Read a command line; report what is wrong or unknown before what is missing.

    `build` makes the parser, with or without anything required. `options_with_value` are the
    tool's own options with a value, which precede the sub-command, or follow it in full.
    UsageError after the message is printed.
    """
    strict, lenient = build(True), build(False)
    lenient.main.usage = _usage_of(strict.main)
    for name, parser in lenient.commands.items():
        parser.usage = _usage_of(strict.commands[name])
    words = with_options_first(
        strict.main,
        with_whole_command(arguments, strict.commands, options_with_value=options_with_value),
        strict.commands,
        options_with_value=options_with_value,
    )
    first = words[: command_index(words, options_with_value)]
    _refuse_unknown(strict.main, lenient.main.parse_known_args(first)[1])
    found, leftover = lenient.main.parse_known_args(words)
    _refuse_unknown(strict.commands.get(found.command, strict.main), leftover)
    return strict.main.parse_args(words)


def _refuse_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    if words:
        parser.error(f"{_UNRECOGNIZED}{' '.join(words)}")


def java_integer(text: str) -> int:
    """Read the value of an option as Java reads an int."""
    try:
        return parse_java_integer(text, bits=32)
    except ValueError:
        problem = f"could not convert '{text}' to Integer (For input string: \"{text}\")"
        raise argparse.ArgumentTypeError(problem) from None


def _usage_of(parser: argparse.ArgumentParser) -> str:
    return parser.format_usage().removeprefix("usage: ").rstrip()


def _kafka_message(message: str) -> str:
    if (required := _REQUIRED.match(message)) is not None:
        if required["first"] == "command":
            return "too few arguments"
        return f"argument {required['first']} is required"
    if (unreadable := _UNREADABLE.match(message)) is not None:
        return f"Could not read arguments from file {unreadable['file']}"
    if message.startswith(_UNRECOGNIZED):
        return f"{_UNRECOGNIZED}'{_unrecognized(message.removeprefix(_UNRECOGNIZED))}'"
    if (choices := _CHOICES.search(message)) is not None:
        return _no_command(choices["word"], _names_in(choices["choices"]))
    if (ambiguous := _AMBIGUOUS.match(message)) is not None:
        options = ", ".join(sorted(ambiguous["options"].split(", ")))
        return f"ambiguous option: {ambiguous['word']} could match {options}"
    return message.replace(": ignored explicit argument ", ": ignore implicit argument ")


def _no_command(word: str, names: Sequence[str]) -> str:
    matching = _matching(word, names)
    if matching:
        return f"ambiguous command: {word} could match {', '.join(matching)}"
    listed = ", ".join(f"'{name}'" for name in names)
    return f"invalid choice: '{word}' (choose from {listed})"


def _names_in(choices: str) -> list[str]:
    return [name.strip("'") for name in choices.split(", ")]


def _matching(word: str, names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if word and name.startswith(word))


def _unrecognized(words: str) -> str:
    """Return those leftover words that Kafka's tools print: only the option if one comes first."""
    first = words.partition(" ")[0]
    return first if len(first) > 1 and first.startswith("-") else words


def with_whole_command(
    arguments: Sequence[str], commands: Collection[str], *, options_with_value: Collection[str] = ()
) -> list[str]:
    """Return the arguments with an abbreviated sub-command completed, where only one matches.

    `options_with_value` are the options with a value that may precede the sub-command.
    """
    words = list(arguments)
    index = command_index(words, options_with_value)
    if index < len(words) and words[index]:
        matching = [name for name in commands if name.startswith(words[index])]
        if len(matching) == 1:
            words[index] = matching[0]
    return words


def with_options_first(
    parser: argparse.ArgumentParser,
    words: Sequence[str],
    commands: Collection[str],
    *,
    options_with_value: Collection[str],
) -> list[str]:
    """Return the words with these options in front of the sub-command, as Kafka's tools want them.

    They may follow it in full. One that is in both places, that follows it twice or that has no
    value there is an error of `parser`. `words` contain the complete name of the sub-command.
    """
    index = command_index(words, options_with_value)
    if index >= len(words) or words[index] not in commands:
        return list(words)
    first = list(words[:index])
    kept = [words[index]]
    rest = iter(words[index + 1 :])
    for word in rest:
        name, has_value, _ = word.partition("=")
        if name not in options_with_value:
            kept.append(word)
            continue
        if _has_option(first, name):
            parser.error(f"argument {name}: given twice")
        first.append(word)
        if not has_value:
            value = next(rest, None)
            if value is None or value.startswith("-"):
                parser.error(f"argument {name}: expected one argument")
            first.append(value)
    return [*first, *kept]


def _has_option(words: Sequence[str], name: str) -> bool:
    """Return whether an option is among words, in full or by its beginning."""
    return any(word.startswith("--") and name.startswith(word.partition("=")[0]) for word in words)


def check_command_options(
    words: Sequence[str],
    parsers: Mapping[str, argparse.ArgumentParser],
    *,
    options_with_value: Collection[str],
) -> None:
    """Report unknown arguments of a sub-command before missing arguments in front of it.

    Kafka's tools check the arguments of the sub-command first. `words` contain the complete name of
    the sub-command.
    """
    index = command_index(words, options_with_value)
    parser = parsers.get(words[index]) if index < len(words) else None
    if parser is not None:
        _refuse_unknown(parser, parser.parse_known_args(words[index + 1 :])[1])


def command_index(words: Sequence[str], options_with_value: Collection[str]) -> int:
    """Return the index of the sub-command, which comes after options and their values."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        takes_next = any(option.startswith(words[index]) for option in options_with_value)
        index += 2 if takes_next else 1
    return index


def closest(word: str, names: Mapping[str, str]) -> list[str]:
    """Return the keys of `names` whose values are closest to `word`, none if all are too far."""
    distances = {
        key: 0 if name.startswith(word) else _distance(word, name) for key, name in names.items()
    }
    least = min(distances.values(), default=_TOO_FAR)
    return [] if least >= _TOO_FAR else sorted(key for key in names if distances[key] == least)


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
