"""One run at a time: the file ``_lock`` in the output.

On this machine the operating system holds the lock, and drops it when the process ends, however it
ends. Elsewhere the file itself is the lock: it is created when a run begins and removed when it
ends; what a killed run left counts until its process is gone, or until the file is removed by hand.
"""

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from kvorum.spark.errors import OutputInUseError
from kvorum.spark.pipeline.layout import LOCK
from kvorum.spark.pipeline.output_files import LocalOutput, OutputFiles
from kvorum.storage.files import RealFileSystem

_held: Final[set[str]] = set()
"""The contents of the lock files that this process holds."""


@contextmanager
def locked(files: OutputFiles, root: str) -> Generator[None]:
    """Hold the output for one run; raises `OutputInUseError` where another one holds it."""
    path = f"{root}/{LOCK}"
    holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "token": uuid4().hex})
    if isinstance(files, LocalOutput):
        with _held_by_system(Path(path), holder):
            yield
        return
    with _noted(holder):
        _take_file(files, path, holder)
        try:
            yield
        finally:
            files.remove(path)


@contextmanager
def _noted(holder: str) -> Generator[None]:
    """Keep a lock of this process apart from one that a former process with its id has left."""
    _held.add(holder)
    try:
        yield
    finally:
        _held.remove(holder)


@contextmanager
def _held_by_system(path: Path, holder: str) -> Generator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    held = RealFileSystem().lock(path)
    if held is None:
        raise OutputInUseError(f"{path.parent}: {_named(path.read_text('utf-8'))} writes to it")
    try:
        path.write_text(holder, encoding="utf-8")
        yield
        path.write_text("", encoding="utf-8")
    finally:
        held.release()


def _take_file(files: OutputFiles, path: str, holder: str) -> None:
    """Create the file of the lock.

    Where the store cannot create a file on condition, of two runs that do at once the last writer
    has the lock.
    """
    found = files.read(path)
    if found is not None:
        if not _is_of_ended_process(found):
            raise OutputInUseError(
                f"{path}: {_named(found.decode())} writes to this output; if that process has "
                "ended on another machine, remove this file"
            )
        files.remove(path)
    # A request whose answer was lost is sent again, and finds the file that it has made.
    files.create(path, holder.encode())
    if files.read(path) != holder.encode():
        raise OutputInUseError(f"{path}: another run began at the same moment")


def _is_of_ended_process(found: bytes) -> bool:
    """Return whether a lock was left by a process of this machine that has ended.

    Such a process may have had the id of this one, as the first of a container always has.
    """
    try:
        facts = json.loads(found)
        if facts["host"] != socket.gethostname():
            return False
        if facts["pid"] == os.getpid():
            return found.decode() not in _held
        os.kill(facts["pid"], 0)
    except ProcessLookupError:
        return True
    except (ValueError, KeyError, OSError):
        return False
    return False


def _named(holder: str) -> str:
    try:
        facts = json.loads(holder)
        return f"process {facts['pid']} on {facts['host']}"
    except (ValueError, KeyError):
        return "another process"
