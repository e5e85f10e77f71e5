"""The command line of ``kvorum dump-log``, read as kafka-dump-log's library does.

An option may begin with one dash or two, and have its value behind "=" or as the next word. A
switch may have a value, which means nothing. Words that belong to no option mean nothing either.
"""

import argparse
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

_DECODER: Final = (
    "a Python function from bytes to what is printed, as package.module:function or by the name "
    "of an entry point of the group kvorum.decoders; or StringDecoder (the default), LongDecoder "
    "or IntegerDecoder of org.apache.kafka.tools.api"
)
"""The values that the options for keys and for values take."""


class WrongUsageError(Exception):
    """A command line that cannot be understood; the text is one line."""


class Takes(Enum):
    """Whether an option has a value."""

    NOTHING = auto()
    VALUE = auto()
    MAYBE_VALUE = auto()


class Option(NamedTuple):
    """An option: its help, and what its value is."""

    text: str
    takes: Takes = Takes.NOTHING
    value: str = ""


OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "files": Option(
            "the files, separated by commas: .log, .checkpoint, .index, .timeindex, .txnindex, "
            ".snapshot",
            Takes.VALUE,
            "FILE,...",
        ),
        "print-data-log": Option("print the contents of records"),
        "deep-iteration": Option("print records, not only batches"),
        "skip-record-metadata": Option(
            "of records print only the contents, of control records nothing"
        ),
        "cluster-metadata-decoder": Option("read contents as records of the cluster's metadata"),
        "offsets-decoder": Option("read contents as records of __consumer_offsets"),
        "transaction-log-decoder": Option("read contents as records of __transaction_state"),
        "share-group-state-decoder": Option("read contents as records of __share_group_state"),
        "remote-log-metadata-decoder": Option("read contents as records of __remote_log_metadata"),
        "key-decoder-class": Option(f"decode keys with {_DECODER}", Takes.MAYBE_VALUE, "DECODER"),
        "value-decoder-class": Option("decode values; see above", Takes.MAYBE_VALUE, "DECODER"),
        "verify-index-only": Option("compare indexes with their logs without printing them"),
        "index-sanity-check": Option(
            "check indexes as a broker does at start, without printing them"
        ),
        "max-bytes": Option(
            "read at most this many bytes of a log (default: 2147483647)", Takes.VALUE, "SIZE"
        ),
        "max-message-size": Option(
            "the largest batch that an index may point at (default: 5242880)", Takes.VALUE, "SIZE"
        ),
        "help": Option("print this text"),
        "version": Option("print the release of Kafka whose output this is"),
    }
)


@dataclass(slots=True)
class Given:
    """The options of a command line, with all their values, and the words that belong to none."""

    values: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    unused: list[str] = field(default_factory=list[str])

    def has(self, *names: str) -> bool:
        """Whether one of the options is there."""
        return any(name in self.values for name in names)

    def value(self, name: str, default: str) -> str:
        """Return an option's only value; WrongUsageError where it has several."""
        values = self.values.get(name, [])
        if len(values) > 1:
            raise WrongUsageError(f"Found multiple arguments for option {name}, one is needed")
        return values[0] if values else default


def parse_words(words: Sequence[str]) -> Given:
    """Read a command line; WrongUsageError for options that do not exist or lack their value."""
    given = Given()
    waiting = deque(words)
    while waiting:
        word = waiting.popleft()
        if word == "--":
            given.unused.extend(waiting)
            break
        if not _is_option(word):
            given.unused.append(word)
            continue
        name, _, value = word.removeprefix("--" if word.startswith("--") else "-").partition("=")
        if name not in OPTIONS:
            raise WrongUsageError(f"{name} is not a recognized option")
        values = given.values.setdefault(name, [])
        takes = OPTIONS[name].takes
        if takes is Takes.VALUE and not value:
            if not waiting:
                raise WrongUsageError(f"Option {name} requires an argument")
            value = waiting.popleft()
        elif takes is Takes.MAYBE_VALUE and not value and waiting and not _is_option(waiting[0]):
            value = waiting.popleft()
        if value and takes is not Takes.NOTHING:
            values.append(value)
    return given


def help_text(program: str, description: str) -> str:
    """Return the text of --help."""
    parser = argparse.ArgumentParser(prog=program, description=description, add_help=False)
    for name, option in OPTIONS.items():
        if option.takes is Takes.NOTHING:
            parser.add_argument(f"--{name}", action="store_true", help=option.text)
            continue
        nargs = "?" if option.takes is Takes.MAYBE_VALUE else None
        parser.add_argument(
            f"--{name}",
            nargs=nargs,
            help=option.text,
            metavar=option.value,
            required=name == "files",
        )
    return parser.format_help()


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in {"-", "--"}
