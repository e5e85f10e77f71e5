"""The error that Java's side of Spark raises in a driver."""

from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # pyright: ignore[reportMissingTypeStubs] - it has none

JavaError: Final[type[Exception]] = Py4JError
"""Its text is the whole stack trace, after a line of py4j's own."""
