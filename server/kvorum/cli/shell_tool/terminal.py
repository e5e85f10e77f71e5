"""The shell at a terminal: a prompt with history and completion (package prompt_toolkit)."""

from collections.abc import Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.shortcuts import CompleteStyle

from kvorum.cli.shell_tool.session import PROMPT, Session
from kvorum.inspection.shell.commands import complete
from kvorum.inspection.shell.lines import last_word_start, quoted, split_line


class ShellCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield what the word may become; what is complete is followed by a space."""
        del complete_event
        line = document.text_before_cursor
        raw = line[last_word_start(line) :]
        words = split_line(line)
        # Behind a space, or a quote that has just begun, the word has no letter yet.
        if not raw or not split_line(raw):
            words.append("")
        for candidate in complete(words, self._session.surroundings()):
            text = quoted(candidate.text, like=raw, is_complete=candidate.is_complete)
            yield Completion(text, start_position=-len(raw), display=candidate.text)


def run_at_terminal(session: Session) -> None:
    """Run the lines that are typed, until the end of the input or ``exit``."""
    prompt: PromptSession[str] = PromptSession(
        PROMPT,
        completer=ShellCompleter(session),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        history=InMemoryHistory(),
    )
    while True:
        try:
            if not session.run_line(prompt.prompt()):
                return
        except KeyboardInterrupt:
            print("^C")
        except EOFError:
            return
