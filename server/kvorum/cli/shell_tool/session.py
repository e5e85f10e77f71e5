"""A session of the shell: its command line, where its metadata comes from, its lines one by one.

The command line is kafka-metadata-shell's, with the sources that are ours.
"""

import errno
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from kvorum.cli.encodings import replace_what_is_lacking
from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.folding import fold_directory, fold_file
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.shell.commands import ROOT, Surroundings, read_step
from kvorum.inspection.shell.grammar import (
    HELP,
    Count,
    Grammar,
    GrammarError,
    HelpAskedError,
    Option,
    Positional,
    parse,
)
from kvorum.inspection.shell.help_text import (
    WIDTH_DEFAULT,
    grammar_lines,
    grammar_usage,
    usage_lines,
    wrapped_lines,
)
from kvorum.inspection.shell.image_tree import Directory, Software, shell_tree
from kvorum.inspection.shell.lines import LineHistory, split_line
from kvorum.inspection.shell.quorum import LiveQuorum
from kvorum.node.version import VERSION
from kvorum.storage.errors import PropertiesFormatError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.small_files.directory_lock import LOCK_FILE
from kvorum.storage.small_files.java_properties import load_java_properties

PROGRAM: Final = "kvorum shell"
DESCRIPTION: Final = "The metadata shell: a cluster's metadata as a tree."
SNAPSHOT: Final = Option(
    ("--snapshot", "-s"), "The metadata snapshot file to read.", metavar="SNAPSHOT"
)
DIRECTORY: Final = Option(
    ("--directory", "-d"),
    "The metadata log directory to read: its latest snapshot and its log.",
    metavar="DIRECTORY",
)
CONTROLLERS: Final = Option(
    ("--bootstrap-controller", "-b"),
    "The controllers of a running quorum, as host:port,host:port.",
    metavar="CONTROLLERS",
)
CONFIG: Final = Option(
    ("--command-config",),
    "The properties file with the security settings for the connection to the controllers.",
    metavar="FILE",
)
SOURCES: Final = (SNAPSHOT, DIRECTORY, CONTROLLERS)
GRAMMAR: Final = Grammar(
    Positional("command", Count.ANY, "The command to run; none for reading commands."),
    (HELP, *SOURCES, CONFIG),
)
_MARGIN: Final = 5
SOFTWARE: Final = Software(VERSION, "unknown")
"""The content of ``/local`` about this program; its commit is not recorded."""
PAUSE_S: Final = 1.0
"""The pause of following after a failure."""
_JAVA_ERRORS: Final = {
    errno.ENOENT: "java.nio.file.NoSuchFileException",
    errno.EACCES: "java.nio.file.AccessDeniedException",
}
Warn = Callable[[str], None]
Root = Callable[[], Directory]
PROMPT = ">> "
BANNER = "[ Kafka Metadata Shell ]"


class WrongUsageError(Exception):
    """A command line that cannot be run; what to say is printed."""


class HelpPrintedError(Exception):
    """A command line that asks for help, which is printed."""


class Arguments(NamedTuple):
    """The place of the metadata, and the command to run; no command for reading commands."""

    source: Option
    place: str
    config: str | None
    command: tuple[str, ...]


def read_arguments(words: Sequence[str]) -> Arguments:
    """Return what a command line says.

    Raises `WrongUsageError` and `HelpPrintedError`, each after its text is printed.
    """
    try:
        parsed = parse(GRAMMAR, words)
        given = [source for source in SOURCES if source.name in parsed.values]
        names = " ".join("/".join(source.flags) for source in SOURCES)
        if not given:
            raise GrammarError(f"one of the arguments {names} is required")
        if len(given) > 1:
            first, second = ("/".join(source.flags) for source in given[:2])
            raise GrammarError(f"argument {second}: not allowed with argument {first}")
        if CONFIG.name in parsed.values and given != [CONTROLLERS]:
            raise GrammarError("argument --command-config: only with --bootstrap-controller")
    except HelpAskedError:
        width = help_width()
        description = ["", *wrapped_lines(DESCRIPTION, width)]
        print("\n".join([*_usage(width), *description, *grammar_lines(GRAMMAR, width)]))
        raise HelpPrintedError from None
    except GrammarError as error:
        width = help_width()
        for line in [*_usage(width), *wrapped_lines(f"{PROGRAM}: error: {error}", width)]:
            print(line, file=sys.stderr)
        raise WrongUsageError from None
    (source,) = given
    config = parsed.values.get(CONFIG.name)
    return Arguments(source, parsed.values[source.name], config, parsed.words)


def help_width() -> int:
    """Return how wide help screens may be: a little less than the terminal."""
    columns = os.environ.get("COLUMNS")
    try:
        if columns is not None:
            width = int(columns)
        else:
            with Path("/dev/tty").open("rb") as terminal:
                width = os.get_terminal_size(terminal.fileno()).columns
    except (OSError, ValueError):
        return WIDTH_DEFAULT
    return width - _MARGIN if width > _MARGIN else WIDTH_DEFAULT


def _usage(width: int) -> Iterator[str]:
    return usage_lines(PROGRAM, grammar_usage(GRAMMAR), width)


@contextmanager
def opened_source(arguments: Arguments, *, warn: Warn) -> Generator[Root]:
    """Load the metadata, and give the root of its tree at any later time.

    Raises `MetadataSourceError` where it cannot be loaded.
    """
    if arguments.source is CONTROLLERS:
        with closing(LiveQuorum(arguments.place, _properties(arguments.config))) as quorum:
            quorum.catch_up()
            if arguments.command:
                yield _fixed(quorum.folded)
            else:
                with _following(quorum, warn=warn) as root:
                    yield root
    elif arguments.source is DIRECTORY:
        with _file_errors():
            folded = fold_directory(Path(arguments.place), warn=warn)
        yield _fixed(folded)
    else:
        with _locked(arguments.place):
            with _file_errors():
                folded = fold_file(Path(arguments.place), warn=warn)
            yield _fixed(folded)


def _fixed(folded: FoldedLog) -> Root:
    root = _tree(folded)
    return lambda: root


def _tree(folded: FoldedLog) -> Directory:
    return shell_tree(folded.image.published, folded.provenance, SOFTWARE)


@contextmanager
def _following(quorum: LiveQuorum, *, warn: Warn) -> Generator[Root]:
    """Fetch new records in a thread of its own, as long as the block runs.

    A failure is warned of, and followed by another attempt: the tree would be out of date without
    a word.
    """
    ended = threading.Event()

    def follow() -> None:
        while not ended.is_set():
            try:
                quorum.follow()
            except Exception as error:  # noqa: BLE001 - any error is said, and the thread goes on
                if not ended.is_set():
                    warn(f"new records cannot be had: {_failure_text(error)}")
                ended.wait(PAUSE_S)

    thread = threading.Thread(target=follow, name="kvorum-shell-follower", daemon=True)
    thread.start()
    try:
        yield lambda: _tree(quorum.folded)
    finally:
        ended.set()
        thread.join(timeout=PAUSE_S)


def _failure_text(error: Exception) -> str:
    """Return why following failed; an error that is not one of its own has its type."""
    if isinstance(error, MetadataSourceError):
        return str(error)
    return f"{type(error).__name__}: {error} (this is a defect)"


@contextmanager
def _locked(snapshot: str) -> Generator[None]:
    """Keep nodes out of the directory that a snapshot is of, if it has a lock file."""
    directory = Path(_parent(_parent(snapshot)))
    if not (directory / LOCK_FILE).exists():
        yield
        return
    with _file_errors():
        held = RealFileSystem().lock(directory / LOCK_FILE)
    if held is None:
        raise MetadataSourceError(
            f"Unable to lock {directory.absolute()}. Please ensure that no broker or controller "
            "process is using this directory before proceeding."
        )
    try:
        yield
    finally:
        held.release()


def _parent(path: str) -> str:
    """Return the directory in a path; the path itself where no other one is named."""
    pure = PurePath(path)
    return str(pure.parent) if len(pure.parts) > 1 else path


@contextmanager
def _file_errors() -> Generator[None]:
    """Turn an OSError inside the block into a MetadataSourceError, named as Java names it."""
    try:
        yield
    except OSError as error:
        name = _JAVA_ERRORS.get(error.errno or 0)
        text = (
            f"{error.filename}: {error.strerror}" if name is None else f"{name}: {error.filename}"
        )
        raise MetadataSourceError(text) from error


def _properties(config: str | None) -> dict[str, str]:
    if config is None:
        return {}
    try:
        with _file_errors():
            return load_java_properties(Path(config).read_bytes())
    except PropertiesFormatError as error:
        raise MetadataSourceError(str(error)) from error


class Session:
    """The working directory and the lines read so far.

    `screen_width` returns the width of the screen in characters, None without one.
    """

    def __init__(self, root: Root, screen_width: Callable[[], int | None]) -> None:
        self._root = root
        self._screen_width = screen_width
        self._working_directory = ROOT
        self._history = LineHistory()

    def run_line(self, line: str) -> bool:
        """Run a line, print its output, and return False if it ends the session.

        Raises `DanglingNameError`, with nothing of the output printed, as Kafka's shell.
        """
        line = self._history.expand(line)
        self._history.add(line)
        step = read_step(split_line(line), self.surroundings())
        print("".join(f"{text}\n" for text in step.lines), end="")
        if step.goes_to is not None:
            self._working_directory = step.goes_to
        return not step.ends

    def surroundings(self) -> Surroundings:
        """Return what the next command finds around it."""
        return Surroundings(
            self._root(),
            self._working_directory,
            screen_width=self._screen_width(),
            help_width=help_width(),
            history=self._history,
        )


def run_once(root: Root, words: Sequence[str]) -> None:
    """Run one command and print its output; raises `DanglingNameError` after that."""
    for text in read_step(words, Surroundings(root(), help_width=help_width())).lines:
        print(text)


def run_lines(session: Session) -> None:
    """Run the lines of the standard input; one that does not end is left out.

    Bytes that are no text in its encoding are U+FFFD, as for Java.
    """
    replace_what_is_lacking(sys.stdin)
    while True:
        print(PROMPT, end="", flush=True)
        line = sys.stdin.readline()
        if not line.endswith("\n") or not session.run_line(line.removesuffix("\n")):
            return
