"""A command whose reader has gone, as in ``kvorum simulate … | head``: it ends without a word.

A BrokenPipeError may also come from a connection to a node, so the error alone does not show whose
pipe it was; the streams are asked. SIGPIPE stays ignored, as Python has it: with the signal's
default action, any client that closes its connection would end a server.
"""

import os
import select
import signal
import sys
from typing import Final, TextIO

READER_GONE: Final = 128 + signal.SIGPIPE
"""The exit code that a shell reports for a program whose output nothing reads: 141."""


def flush_output() -> None:
    """Write out what is printed; BrokenPipeError now, and not at the interpreter's end."""
    for stream in output_streams():
        stream.flush()


def silence_output() -> bool:
    """Discard what is printed on streams that have lost their reader; return whether any has.

    The stream still holds what it could not write, and the interpreter flushes it when it ends.
    """
    gone = [stream for stream in output_streams() if _is_reader_gone(stream)]
    for stream in gone:
        discard(stream)
    return bool(gone)


def discard(stream: TextIO) -> None:
    """Let a stream lose what it holds, and what is printed on it from here on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def output_streams() -> list[TextIO]:
    """Return the streams that there are: a process may be started without them."""
    streams: list[TextIO | None] = [sys.stdout, sys.stderr]
    return [stream for stream in streams if stream is not None and not stream.closed]


def _is_reader_gone(stream: TextIO) -> bool:
    try:
        descriptor = stream.fileno()
    except OSError:
        # A stream in memory, which a test reads.
        return False
    poller = select.poll()
    poller.register(descriptor, 0)
    return any(state & select.POLLERR for _, state in poller.poll(0))
