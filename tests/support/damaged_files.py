"""Damage that is done to a copy of a directory: one change of one file, or a swap of two."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Contents: TypeAlias = dict[str, bytes]
"""A directory's files by their paths below it."""


@dataclass(frozen=True)
class Damage:
    """An operation, its file, and all files afterwards.

    `touched` are the paths, before and after, at which something is wrong now.
    """

    how: str
    file: str
    touched: tuple[str, ...]
    after: Contents


def read_contents(directory: Path) -> Contents:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "dumps" not in path.parts
    }


class Vandal:
    """Does damage, by chance, of every kind that a file can suffer."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._bytes_damages: tuple[Callable[[bytes], tuple[str, bytes]], ...] = (
            self._flip,
            self._flip,
            self._flip,
            self._byte,
            self._cut,
            self._cut_out,
            self._zeroed,
            self._zeroed_end,
            self._doubled,
            self._appended,
            self._exchanged,
        )

    def damages(self, contents: Contents, count: int) -> Iterator[Damage]:
        """Yield `count` damages of one directory, each of which changes something."""
        names = [name for name in contents if contents[name]]
        done = 0
        while done < count:
            damage = self._one(contents, self._random.choice(names))
            if damage is not None and damage.after != contents:
                done += 1
                yield damage

    def _one(self, contents: Contents, name: str) -> Damage | None:
        choice = self._random.random()
        if choice < 0.06:
            return self._missing(contents, name)
        if choice < 0.12:
            return self._renamed(contents, name)
        if choice < 0.20:
            return self._swapped(contents, name)
        how, data = self._random.choice(self._bytes_damages)(contents[name])
        return Damage(how, name, (name,), contents | {name: data})

    def _missing(self, contents: Contents, name: str) -> Damage:
        after = {other: data for other, data in contents.items() if other != name}
        return Damage("missing", name, (name,), after)

    def _renamed(self, contents: Contents, name: str) -> Damage | None:
        """Give a file another offset in its name."""
        head, _, tail = name.rpartition("/")
        if not tail[:20].isdecimal():
            return None
        offset = int(tail[:20]) + self._random.choice((-7, -1, 1, 2, 100))
        renamed = f"{head}/{max(offset, 0):020d}{tail[20:]}".removeprefix("/")
        if renamed in contents:
            return None
        after = {renamed if other == name else other: data for other, data in contents.items()}
        return Damage(f"renamed to {renamed}", name, (name, renamed), after)

    def _swapped(self, contents: Contents, name: str) -> Damage | None:
        """Exchange two files of one directory, most often of one kind."""
        suffix = Path(name).suffix
        alike = [other for other in contents if Path(other).suffix == suffix and other != name]
        others = alike if alike and self._random.random() < 0.7 else [*contents]
        other = self._random.choice(others)
        after = contents | {name: contents[other], other: contents[name]}
        return Damage(f"swapped with {other}", name, (name, other), after)

    def _place(self, data: bytes) -> int:
        return self._random.randrange(len(data))

    def _range(self, data: bytes) -> tuple[int, int]:
        start = self._place(data)
        return start, min(len(data), start + self._random.choice((1, 2, 4, 8, 61, 300, 4096)))

    def _flip(self, data: bytes) -> tuple[str, bytes]:
        place, bit = self._place(data), self._random.randrange(8)
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        return f"bit {bit} of byte {place} flipped", bytes(changed)

    def _byte(self, data: bytes) -> tuple[str, bytes]:
        place, value = self._place(data), self._random.randrange(256)
        return f"byte {place} is {value}", data[:place] + bytes((value,)) + data[place + 1 :]

    def _cut(self, data: bytes) -> tuple[str, bytes]:
        place = self._place(data)
        return f"cut to {place} bytes", data[:place]

    def _cut_out(self, data: bytes) -> tuple[str, bytes]:
        start, end = self._range(data)
        return f"bytes {start} to {end} cut out", data[:start] + data[end:]

    def _zeroed(self, data: bytes) -> tuple[str, bytes]:
        start, end = self._range(data)
        return f"bytes {start} to {end} zeroed", data[:start] + bytes(end - start) + data[end:]

    def _zeroed_end(self, data: bytes) -> tuple[str, bytes]:
        place = self._place(data)
        return f"zeroed from byte {place} on", data[:place] + bytes(len(data) - place)

    def _doubled(self, data: bytes) -> tuple[str, bytes]:
        start, end = self._range(data)
        return f"bytes {start} to {end} doubled", data[:end] + data[start:end] + data[end:]

    def _appended(self, data: bytes) -> tuple[str, bytes]:
        added = self._random.randbytes(self._random.choice((1, 5, 12, 80)))
        return f"{len(added)} bytes appended", data + added

    def _exchanged(self, data: bytes) -> tuple[str, bytes]:
        """Exchange two ranges of one length."""
        start, end = self._range(data)
        size = end - start
        other = self._random.randrange(max(len(data) - size, 1))
        first, second = min(start, other), max(start, other)
        if first + size > second:
            return self._flip(data)
        changed = bytearray(data)
        changed[first : first + size], changed[second : second + size] = (
            data[second : second + size],
            data[first : first + size],
        )
        return f"{size} bytes at {first} and {second} exchanged", bytes(changed)
