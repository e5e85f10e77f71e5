"""Command lines parsed as Kafka's tools parse them, with their messages and exit codes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

_REQUIRED = re.compile(r"the following arguments are required: (?P<first>[^,]+)")
_UNREADABLE = re.compile(r"\[Errno .*: (?P<file>'.*')\Z")
_CHOICES = re.compile(r"\(choose from (?P<choices>.*)\)")
_AMBIGUOUS = re.compile(r"ambiguous option: (?P<word>\S+) could match (?P<options>.*)\Z")


class UsageError(Exception):
    """A wrong command line; the usage has been printed already."""


class KafkaStyleParser(argparse.ArgumentParser):
    """A parser that reports wrong usage as Kafka's tools do: one message, and never exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and raise UsageError."""
        self.print_usage(sys.stderr)
        # The message names the whole tool, also for the arguments of a sub-command.
        program = " ".join(self.prog.split()[:2])
        sys.stderr.write(f"{program}: error: {_kafka_message(message)}\n")
        raise UsageError


def _kafka_message(message: str) -> str:
    if (required := _REQUIRED.match(message)) is not None:
        if required["first"] == "command":
            return "too few arguments"
        return f"argument {required['first']} is required"
    if (unreadable := _UNREADABLE.match(message)) is not None:
        return f"Could not read arguments from file {unreadable['file']}"
    if message.startswith("unrecognized arguments: "):
        return f"unrecognized arguments: '{_unrecognized(message.partition(': ')[2])}'"
    if (choices := _CHOICES.search(message)) is not None:
        names = ", ".join(f"'{name.strip(chr(39))}'" for name in choices["choices"].split(", "))
        complaint = message[: choices.start()].partition(": ")[2]
        return f"{complaint}(choose from {names})"
    if (ambiguous := _AMBIGUOUS.match(message)) is not None:
        options = ", ".join(sorted(ambiguous["options"].split(", ")))
        return f"ambiguous option: {ambiguous['word']} could match {options}"
    return message


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
        leftover = parser.parse_known_args(words[index + 1 :])[1]
        if leftover:
            parser.error(f"unrecognized arguments: {' '.join(leftover)}")


def command_index(words: Sequence[str], options_with_value: Collection[str]) -> int:
    """Return the index of the sub-command, which comes after options and their values."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        takes_next = any(option.startswith(words[index]) for option in options_with_value)
        index += 2 if takes_next else 1
    return index
