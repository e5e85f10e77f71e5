"""The number of log files that a broker has open at once.

A partition has a segment's file and two indexes, and a process may have only so many descriptors.
So the files of logs are open in turns: one that was not used lately is let go without a word to its
owner, and opened again when it is next used. Those in use stay: a hand goes round and lets go of
the first file that was not used again since it came by.

**Syncs.** To let a file go loses nothing that was written. The bytes are the system's, and a sync
makes all of a file's bytes durable, through whichever descriptor they were written. An error that
the system meets when it writes the bytes on its own is kept with the file, and the next sync
reports it, also through a descriptor that was opened later (Linux since 4.17). It is forgotten in
one case: the system needs memory and drops what it knows of a file that is not open. Where a
sync is an acknowledgement nothing may be forgotten. The metadata log's files are therefore not
among these: they stay open from the first write to the last sync. A topic's log is kept by its
replicas; with ``flush.messages=1`` the sync follows the write at once, by the same descriptor.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakSet

from kvorum.storage.files import Descriptor, OpenFile, is_out_of_descriptors

Result = TypeVar("Result")


class LetGoFile(Protocol):
    """A file that is open only in turns."""

    is_used: bool
    """Whether the file was used again since it was opened, or since this was set to False."""

    def let_go(self) -> Descriptor | None:
        """Drop the open file, and return its descriptor if the system has one."""
        ...


class OpenFiles:
    """The open files of all logs of a process: at most `count_max`, while that can be held.

    Any thread may call. What is read or sent from a file that was let go keeps its descriptor to
    the end of that, and counts until then.
    """

    def __init__(self, count_max: int) -> None:
        self.count_max = count_max
        self.lock = threading.RLock()
        """Held while a file is opened, let go or closed."""
        self._files: OrderedDict[LetGoFile, None] = OrderedDict()
        self._lent: WeakSet[Descriptor] = WeakSet()

    @property
    def count(self) -> int:
        """The number of open files."""
        return len(self._files) + len(self._lent)

    def open(self, file: LetGoFile, opening: Callable[[], OpenFile]) -> OpenFile:
        """Return what `opening` opens for `file`, in the place of others if need be."""
        with self.lock:
            self._let_go(self.count - self.count_max + 1)
            opened = self.with_descriptors(opening)
            self._files[file] = None
            return opened

    def forget(self, file: LetGoFile) -> None:
        """Count a file no longer, which is closed."""
        with self.lock:
            self._files.pop(file, None)

    def with_descriptors(self, work: Callable[[], Result]) -> Result:
        """Do what needs a descriptor; where none is left, let half of the files go and do it again.

        Others of this process may have taken more than is left to them.
        """
        try:
            return work()
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
            with self.lock:
                self._let_go(len(self._files) // 2 + 1)
        return work()

    def _let_go(self, count: int) -> None:
        # Twice round: others may use the files meanwhile.
        for _ in range(2 * len(self._files)):
            if count <= 0 or not self._files:
                return
            file, _none = self._files.popitem(last=False)
            if file.is_used:
                file.is_used = False
                self._files[file] = None
                continue
            descriptor = file.let_go()
            if descriptor is not None:
                self._lent.add(descriptor)
            del descriptor
            count -= 1
