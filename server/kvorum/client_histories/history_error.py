"""The error of a file that is not a history."""


class HistoryError(Exception):
    """A line that does not belong into a history, by its number, and the problem with it."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem
