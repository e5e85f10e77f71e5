"""The subcommands of ``kvorum log``, one module each: arguments in, lines out."""

from typing import Final

PROGRAM: Final = "kvorum log"
