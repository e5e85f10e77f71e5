"""The commands of the shell: what a command line prints, given a tree and a working directory.

The words of a line are completed to names of commands, and to paths in the tree.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.inspection.shell.grammar import (
    Count,
    Grammar,
    GrammarError,
    HelpAskedError,
    Positional,
    is_option,
    parse,
)
from kvorum.inspection.shell.help_text import (
    WIDTH_DEFAULT,
    column_lines,
    grammar_lines,
    grammar_usage,
    titled_lines,
    usage_lines,
)
from kvorum.inspection.shell.image_tree import DanglingNameError, Directory, find_lines, tree_lines
from kvorum.inspection.shell.lines import LineHistory
from kvorum.inspection.shell.paths import Found, effective_paths, find_nodes, path_components
from kvorum.metadata.java_order import in_java_order
from kvorum.wire.java_text import parse_java_integer

ROOT: Final = "/"
_WITH_PATHS: Final = ("cat", "find", "ls", "tree")
_WITH_ONE_PATH: Final = "cd"
_WITH_ONE_COMMAND: Final = "man"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a command.

    `screen_width` is None without a screen; `help_width` is how wide help screens may be.
    `history` is None where commands are not read one after the other; some commands are missing
    then.
    """

    root: Directory
    working_directory: str = ROOT
    screen_width: int | None = None
    help_width: int = WIDTH_DEFAULT
    history: LineHistory | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A command, ready to run: its lines, which are computed one by one.

    Iterating over `lines` raises `DanglingNameError` behind those that come before the name.
    `goes_to` is where it changes to, as a path with wildcards; `ends` that the shell ends.
    """

    lines: Iterator[str]
    goes_to: str | None = None
    ends: bool = False


Run = Callable[[Surroundings, Sequence[str]], Step]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it does, and what its command line may have."""

    name: str
    description: str
    run: Run
    positional: Positional | None = None
    is_shell_only: bool = False

    @property
    def grammar(self) -> Grammar:
        """The words that its command line may have."""
        return Grammar(self.positional)


def read_step(words: Sequence[str], around: Surroundings) -> Step:
    """Return what a command line does; empty words at its end do not count."""
    given = list(words)
    while given and not given[-1]:
        given.pop()
    if not given:
        return Step(iter(()))
    is_shell = around.history is not None
    offered = {name: each for name, each in COMMANDS.items() if is_shell or not each.is_shell_only}
    try:
        command, arguments = _command(given, offered)
        parsed = parse(command.grammar, arguments)
    except HelpAskedError:
        return Step(_command_help(_command(given, offered)[0], around.help_width))
    except GrammarError as error:
        return Step(iter((str(error),)))
    if command.name != given[0]:
        return Step(iter((f"invalid choice: '{given[0]}': did you mean '{command.name}'?",)))
    return command.run(around, parsed.words)


def _command(words: Sequence[str], offered: Mapping[str, Command]) -> tuple[Command, Sequence[str]]:
    """Return the command that the first word names or abbreviates, and the other words."""
    name, *arguments = words
    if name == "--":
        rest = " ".join(arguments)
        raise GrammarError(f"unrecognized arguments: '{rest}'" if rest else "too few arguments")
    if is_option(name):
        raise GrammarError(f"unrecognized arguments: '{name}'")
    if name in offered:
        return offered[name], arguments
    matching = [each for each in offered if name and each.startswith(name)]
    if len(matching) > 1:
        raise GrammarError(f"ambiguous command: {name} could match {', '.join(matching)}")
    if not matching:
        choices = ", ".join(f"'{each}'" for each in offered)
        raise GrammarError(f"invalid choice: '{name}' (choose from {choices})")
    return offered[matching[0]], arguments


def _command_help(command: Command, width: int) -> Iterator[str]:
    yield from usage_lines("", [command.name, *grammar_usage(command.grammar)], width)
    yield from grammar_lines(command.grammar, width)


def _found(around: Surroundings, target: str) -> Iterator[Found | None]:
    """Yield the nodes that a path leads to, or None, once, if it leads nowhere."""
    is_found = False
    for found in find_nodes(around.root, target, around.working_directory):
        is_found = True
        yield found
    if not is_found:
        yield None


def _cat(around: Surroundings, words: Sequence[str]) -> Step:
    def lines() -> Iterator[str]:
        for target in words:
            for found in _found(around, target):
                if found is None:
                    yield f"cat: {target}: No such file or directory."
                elif isinstance(found.node, Directory):
                    yield f"cat: {target}: Is a directory"
                else:
                    yield from tree_lines(found.node)

    return Step(lines())


def _cd(around: Surroundings, words: Sequence[str]) -> Step:
    target = words[0] if words else ROOT
    complaints: list[str] = []
    directories: list[str] = []
    error: DanglingNameError | None = None
    try:
        for found in _found(around, target):
            if found is None:
                complaints.append(f"cd: {target}: no such directory.")
            elif isinstance(found.node, Directory):
                directories.append(found.absolute_path)
            else:
                complaints.append(f"cd: {target}: not a directory.")
    except DanglingNameError as dangling:
        error = dangling

    def lines() -> Iterator[str]:
        yield from complaints
        if error is not None:
            raise error

    return Step(lines(), goes_to=directories[-1] if directories else None)


def _exit(_: Surroundings, __: Sequence[str]) -> Step:
    return Step(iter(()), ends=True)


def _find(around: Surroundings, words: Sequence[str]) -> Step:
    def lines() -> Iterator[str]:
        for path in effective_paths(words):
            for found in _found(around, path):
                if found is None:
                    yield f"find: {path}: no such file or directory."
                else:
                    yield from find_lines(found.node, path)

    return Step(lines())


def _help(around: Surroundings, _: Sequence[str]) -> Step:
    def lines() -> Iterator[str]:
        width = around.help_width
        choices = f"{{{','.join(COMMANDS)}}}"
        yield from ("Welcome to the Apache Kafka metadata shell.", "")
        yield from usage_lines("", [choices, "..."], width)
        yield from ("", "positional arguments:", f"  {choices}")
        for command in COMMANDS.values():
            yield from titled_lines(f"  {command.name}", command.description, width)

    return Step(lines())


def _history(around: Surroundings, words: Sequence[str]) -> Step:
    assert around.history is not None
    count = int(words[0]) if words else None
    return Step(f"{number: 5d}  {line}" for number, line in around.history.last_entries(count))


def _ls(around: Surroundings, words: Sequence[str]) -> Step:
    def lines() -> Iterator[str]:
        files: list[str] = []
        directories: list[tuple[str, list[str]]] = []
        for target in effective_paths(words):
            for found in _found(around, target):
                if found is None:
                    yield f"ls: {target}: no such file or directory."
                elif isinstance(found.node, Directory):
                    directories.append((found.name, found.node.sorted_names()))
                else:
                    files.append(found.name)
        yield from _listing(files, directories, around.screen_width)

    return Step(lines())


def _listing(
    files: list[str], directories: list[tuple[str, list[str]]], screen_width: int | None
) -> Iterator[str]:
    """Yield the files, then the content of each directory, below its name where that is needed."""
    yield from column_lines(files, screen_width)
    needs_name = bool(files) or len(directories) > 1
    is_first = not files
    for name, names in directories:
        if needs_name and names:
            yield from () if is_first else ("",)
            yield f"{name}:"
        # A directory without content is not printed; what follows it is set off from it still.
        is_first = False
        yield from column_lines(names, screen_width)


def _man(around: Surroundings, words: Sequence[str]) -> Step:
    name = words[0]
    command = COMMANDS.get(name)
    if command is None:
        return Step(iter((f"man: unknown command {name}. Type help to get a list of commands.",)))

    def lines() -> Iterator[str]:
        grammar = Grammar(command.positional, options=())
        yield from (f"{name}: {command.description}", "")
        yield from usage_lines(name, grammar_usage(grammar), around.help_width)
        yield from grammar_lines(grammar, around.help_width)

    return Step(lines())


def _pwd(around: Surroundings, _: Sequence[str]) -> Step:
    return Step(iter((around.working_directory,)))


def _tree(around: Surroundings, words: Sequence[str]) -> Step:
    def lines() -> Iterator[str]:
        for target in words:
            for found in _found(around, target):
                if found is None:
                    yield f"tree: {target}: No such file or directory."
                else:
                    yield from tree_lines(found.node)

    return Step(lines())


def _check_integer(word: str) -> None:
    try:
        parse_java_integer(word, bits=32)
    except ValueError:
        problem = f"could not convert '{word}' to Integer (For input string: \"{word}\")"
        raise GrammarError(f"argument numEntriesToShow: {problem}") from None


_ALL: Final = (
    Command(
        "cat",
        "Show the contents of metadata files.",
        _cat,
        Positional("targets", Count.SOME, "The metadata files to display."),
    ),
    Command(
        "cd",
        "Set the current working directory.",
        _cd,
        Positional("target", Count.MAYBE, "The directory to change to."),
        is_shell_only=True,
    ),
    Command("exit", "Exit the metadata shell.", _exit, is_shell_only=True),
    Command(
        "find",
        "Search for nodes in the directory hierarchy.",
        _find,
        Positional("paths", Count.ANY, "The paths to start at."),
    ),
    Command("help", "Display this help message.", _help, is_shell_only=True),
    Command(
        "history",
        "Print command history.",
        _history,
        Positional(
            "numEntriesToShow", Count.MAYBE, "The number of entries to show.", _check_integer
        ),
        is_shell_only=True,
    ),
    Command(
        "ls",
        "List metadata nodes.",
        _ls,
        Positional("targets", Count.ANY, "The metadata node paths to list."),
    ),
    Command(
        "man",
        "Show the help text for a specific command.",
        _man,
        Positional("cmd", Count.ONE, "The command to get help text for."),
        is_shell_only=True,
    ),
    Command("pwd", "Print the current working directory.", _pwd, is_shell_only=True),
    Command(
        "tree",
        "Show the contents of metadata nodes in a tree structure.",
        _tree,
        Positional("targets", Count.SOME, "The metadata nodes to display."),
    ),
)
COMMANDS: Final = MappingProxyType({command.name: command for command in _ALL})
"""The commands by name, in the order of their names."""


class Candidate(NamedTuple):
    """A completion of the last word; a directory's path is not complete: it goes on."""

    text: str
    is_complete: bool


def complete(words: Sequence[str], around: Surroundings) -> Iterator[Candidate]:
    """Yield what the last of `words`, which may be empty, may become."""
    first, *others = words
    if not others:
        yield from _command_names(first)
    elif first in _WITH_PATHS or (first == _WITH_ONE_PATH and len(others) == 1):
        yield from _paths(others[-1], around)
    elif first == _WITH_ONE_COMMAND and len(others) == 1:
        yield from _command_names(others[0])


def _command_names(beginning: str) -> Iterator[Candidate]:
    return (Candidate(name, True) for name in COMMANDS if name.startswith(beginning))


def _paths(beginning: str, around: Surroundings) -> Iterator[Candidate]:
    """Yield the paths with this beginning; after a slash, what is in that directory."""
    components = path_components(beginning, around.working_directory)
    prefix = beginning[: beginning.rfind("/") + 1]
    start = "" if beginning.endswith("/") or not components else components.pop()
    directory = around.root
    for component in components:
        child = directory.child(component)
        if not isinstance(child, Directory):
            return
        directory = child
    for name in sorted(set(directory.names()), key=in_java_order):
        if name.startswith(start):
            is_directory = isinstance(directory.child(name), Directory)
            ending = "/" if is_directory else ""
            yield Candidate(f"{prefix}{name}{ending}", not is_directory)
