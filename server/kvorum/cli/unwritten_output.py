"""Output that cannot be written, as on a full disk: an error of the output, not of a file read.

An OSError of a write does not name its file, as one of a read may not, so the streams are asked.
"""

import errno
from typing import Final

from kvorum.cli.broken_pipe import discard, output_streams

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The errors that a write may have, and no read has."""


class UnwrittenOutputError(Exception):
    """The output of a command cannot be written; the text is one line with the reason."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the output cannot be written: {error.strerror or error}")


def no_space(error: OSError) -> bool:
    """Return whether a write, to the output or to a file that has no name here, found no space."""
    return error.filename is None and error.errno in _NO_SPACE


def discard_unwritten() -> OSError | None:
    """Discard what streams hold that cannot be written, and return why; None where all is written.

    Without that the interpreter would write it when it ends, and complain. Raises BrokenPipeError
    for a stream whose reader has gone.
    """
    found: OSError | None = None
    for stream in output_streams():
        try:
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            discard(stream)
            found = found or error
    return found


def raise_of_output(error: OSError) -> None:
    """Raise `UnwrittenOutputError` for an error of the output, in a command that only reads."""
    unwritten = discard_unwritten()
    if unwritten is not None or no_space(error):
        raise UnwrittenOutputError(unwritten or error) from error
