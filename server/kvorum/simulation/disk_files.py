"""The bytes and names of a simulated disk: as written, and as they would survive a power cut.

A write copies nothing: each file keeps a journal of the bytes that its unsynced writes replaced,
which is empty for plain appends, and undoes these writes when the power is cut.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import NamedTuple

from kvorum.simulation.disk_faults import Arrival, Loss, PowerCut
from kvorum.simulation.fault_ratios import RATIOS


class _Undo(NamedTuple):
    """The undo entry of one unsynced write or truncation."""

    position: int
    size: int
    replaced: bytes
    file_size: int


class DiskFile:
    """One file; a name may or may not point to it."""

    __slots__ = ("_undo", "content", "generation", "is_doomed", "is_read_only", "modified_ms")

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.is_read_only = False
        self.modified_ms = 0
        # Counts every change of existing bytes: while it stays the same, a reader has to look at
        # the appended bytes only.
        self.generation = 0
        # A sync failed: the operating system does not try to write these bytes again.
        self.is_doomed = False
        self._undo: list[_Undo] = []

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Put `data` at `position`; a gap before it is filled with zeros."""
        content = self.content
        size, file_size = len(data), len(content)
        replaced = bytes(content[position : position + size]) if position < file_size else b""
        self.generation += position < file_size
        self._undo.append(_Undo(position, size, replaced, file_size))
        if file_size < position:
            content.extend(bytes(position - file_size))
        content[position : position + size] = data

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes, or extend it with zeros."""
        content = self.content
        self.generation += 1
        self._undo.append(_Undo(size, 0, bytes(content[size:]), len(content)))
        del content[size:]
        content.extend(bytes(size - len(content)))

    def sync(self) -> None:
        """Make everything written durable, except in a file whose sync has failed."""
        if not self.is_doomed:
            self._undo.clear()

    @property
    def is_synced(self) -> bool:
        """Whether a power cut would change nothing."""
        return not self._undo

    @property
    def durable_size(self) -> int:
        """The size of the file at the last sync."""
        return self._undo[0].file_size if self._undo else len(self.content)

    def durable(self) -> bytes:
        """Return the bytes as of the last sync."""
        content = bytearray(self.content)
        for undo in reversed(self._undo):
            del content[undo.file_size :]
            content.extend(bytes(undo.file_size - len(content)))
            content[undo.position : undo.position + len(undo.replaced)] = undo.replaced
        return bytes(content)

    def cut_power(self, random: Random, cut: PowerCut) -> Loss:
        """Keep the part of the unsynced writes that `cut` lets arrive."""
        if not self._undo:
            return Loss(0, is_torn=False)
        if self.is_doomed:
            cut = replace(cut, arrival=Arrival.NONE, keeps_size=False)
        live, durable = bytes(self.content), self.durable()
        first = min(undo.position for undo in self._undo) // cut.block_bytes
        end = -(-max(len(live), len(durable)) // cut.block_bytes)
        arrived = _arrived(random, cut, list(range(first, end)))
        self.content = _mixed(live, durable, cut=cut, first=first, arrived=arrived)
        loss = self._loss(cut.block_bytes, first=first, end=end, arrived=arrived)
        self._undo.clear()
        self.is_doomed = False
        self.generation += 1
        return loss

    def _loss(self, block_bytes: int, *, first: int, end: int, arrived: frozenset[int]) -> Loss:
        lost = [block for block in range(first, end) if block not in arrived]
        is_torn = False
        for undo in self._undo:
            if not undo.size:
                continue
            blocks = range(
                undo.position // block_bytes, (undo.position + undo.size - 1) // block_bytes + 1
            )
            kept = sum(block in arrived for block in blocks)
            is_torn = is_torn or 0 < kept < len(blocks)
        return Loss(len(lost) * block_bytes, is_torn)

    def flip(self, position: int, bit: int) -> None:
        """Change one bit, on the disk and in memory."""
        self.content[position] ^= 1 << bit
        self.generation += 1

    def copy(self) -> DiskFile:
        """Return an independent file with the same bytes and the same journal."""
        other = DiskFile(bytes(self.content))
        other.is_read_only, other.is_doomed = self.is_read_only, self.is_doomed
        other._undo = list(self._undo)
        return other


def _arrived(random: Random, cut: PowerCut, blocks: list[int]) -> frozenset[int]:
    match cut.arrival:
        case Arrival.ALL:
            return frozenset(blocks)
        case Arrival.NONE:
            return frozenset()
        case Arrival.FIRST:
            return frozenset(blocks[: random.randint(0, len(blocks))])
        case Arrival.ANY:
            return frozenset(block for block in blocks if random.random() < cut.block_arrives)


def _mixed(
    live: bytes, durable: bytes, *, cut: PowerCut, first: int, arrived: frozenset[int]
) -> bytearray:
    """Return the file with the blocks that arrived from `live` and the others from `durable`."""
    block_bytes = cut.block_bytes
    if len(live) < len(durable):
        # A truncation is one change: it arrives with the rest, or nothing arrives.
        return bytearray(live if arrived else durable)
    reached = max((min((block + 1) * block_bytes, len(live)) for block in arrived), default=0)
    size = len(live) if cut.keeps_size and arrived else max(len(durable), reached)
    content = bytearray(live[: first * block_bytes])
    for start in range(first * block_bytes, size, block_bytes):
        source = live if start // block_bytes in arrived else durable
        end = min(start + block_bytes, size)
        piece = source[start:end]
        content += piece
        content += bytes(end - start - len(piece))
    return content


class NameChange(NamedTuple):
    """The change of a name, which then points to a file or to none; a rename changes two names."""

    name: str
    file: DiskFile | None
    old_name: str | None = None

    def apply(self, names: dict[str, DiskFile]) -> None:
        """Make the change in the names of a directory."""
        if self.file is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.file
        if self.old_name is not None:
            names.pop(self.old_name, None)


class DiskDirectory:
    """The names of one directory, the durable ones among them."""

    __slots__ = ("_durable", "_unsynced", "generation", "names")

    def __init__(self) -> None:
        self.names: dict[str, DiskFile] = {}
        self.generation = 0
        self._durable: dict[str, DiskFile] = {}
        self._unsynced: list[NameChange] = []

    def change(self, change: NameChange) -> None:
        """Make a change that the next sync makes durable."""
        change.apply(self.names)
        self.generation += 1
        self._unsynced.append(change)

    def sync(self) -> None:
        """Make all changes durable."""
        for change in self._unsynced:
            change.apply(self._durable)
        self._unsynced.clear()

    def durable_file(self, name: str) -> DiskFile | None:
        """Return the file of a name after a power cut that loses every unsynced change."""
        return self._durable.get(name)

    def cut_power(self, random: Random) -> bool:
        """Keep some of the unsynced changes, not always the first; return whether any is lost."""
        if not self._unsynced:
            return False
        changes = self._unsynced
        if random.random() < RATIOS.names_in_order:
            kept = changes[: random.randint(0, len(changes))]
        else:
            kept = [change for change in changes if random.random() < RATIOS.name_survives]
        for change in kept:
            change.apply(self._durable)
        self.names = dict(self._durable)
        self.generation += 1
        self._unsynced = []
        return len(kept) < len(changes)

    def copy(self) -> DiskDirectory:
        """Return an independent directory with independent files."""
        copies: dict[int, DiskFile] = {}

        def of(file: DiskFile) -> DiskFile:
            if id(file) not in copies:
                copies[id(file)] = file.copy()
            return copies[id(file)]

        other = DiskDirectory()
        other.names = {name: of(file) for name, file in self.names.items()}
        other._durable = {name: of(file) for name, file in self._durable.items()}
        other._unsynced = [
            NameChange(one.name, None if one.file is None else of(one.file), one.old_name)
            for one in self._unsynced
        ]
        return other
