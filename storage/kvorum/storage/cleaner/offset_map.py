"""The latest offset of each key, in a fixed amount of memory (Kafka's SkimpyOffsetMap).

A key is known by its MD5 alone. A slot is 24 bytes: the hash and the offset (int64). The memory is
that of `log.cleaner.dedupe.buffer.size`, which operators size by this; a dictionary would take
several times as much. Few keys use a part of it. Two keys of one hash would be taken for one key,
as in Kafka.
"""

from hashlib import md5
from typing import Final

SLOT_BYTES: Final = 24
FIRST_SLOTS: Final = 1024
GROWTH: Final = 4
_HASH_BYTES: Final = 16
_PROBES_IN_HASH: Final = _HASH_BYTES - 3
_EMPTY: Final = bytes(SLOT_BYTES)


class OffsetMap:
    """Offsets by key, and the offset up to which a log has been mapped."""

    def __init__(self, *, size_bytes: int, load_factor: float) -> None:
        self._slot_count = size_bytes // SLOT_BYTES
        self._entries_max = int(self._slot_count * load_factor)
        if self._slot_count * load_factor <= 1:
            raise ValueError(f"{size_bytes} bytes do not take one key")
        self._count = 0
        self._used = min(self._slot_count, FIRST_SLOTS)
        self._slots = bytearray(self._used * SLOT_BYTES)
        self.latest_offset = -1
        """The last offset that is mapped, -1 before the first."""

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether as many keys are there as the load factor allows."""
        return self._count >= self._entries_max

    def clear(self) -> None:
        """Forget everything."""
        if self._count:
            self._use(min(self._slot_count, FIRST_SLOTS))
        self._count = 0
        self.latest_offset = -1

    def put(self, key: bytes, offset: int) -> None:
        """Set a key's offset. Raises ValueError if no slot is left."""
        if self._count >= self._slot_count:
            raise ValueError(f"all {self._slot_count} slots are in use")
        if self._count * 2 >= self._used < self._slot_count:
            self._grow()
        digest = md5(key, usedforsecurity=False).digest()
        place, is_new = self._find(digest)
        self._slots[place : place + SLOT_BYTES] = digest + offset.to_bytes(8, "big")
        self._count += is_new
        self.latest_offset = offset

    def _use(self, slot_count: int) -> None:
        self._used = slot_count
        self._slots = bytearray(slot_count * SLOT_BYTES)

    def _grow(self) -> None:
        """Take more slots into use, so that few are searched for a key."""
        before = self._slots
        self._use(min(self._used * GROWTH, self._slot_count))
        for start in range(0, len(before), SLOT_BYTES):
            slot = bytes(before[start : start + SLOT_BYTES])
            if slot != _EMPTY:
                place, _ = self._find(slot[:_HASH_BYTES])
                self._slots[place : place + SLOT_BYTES] = slot

    def get(self, key: bytes) -> int:
        """Return a key's offset, -1 for a key that was not put."""
        place, is_new = self._find(md5(key, usedforsecurity=False).digest())
        if is_new:
            return -1
        return int.from_bytes(self._slots[place + _HASH_BYTES : place + SLOT_BYTES], "big")

    def _find(self, digest: bytes) -> tuple[int, bool]:
        """Return the place of a hash or of the empty slot for it, and whether that is empty."""
        slots, slot_count = self._slots, self._used
        number = 0
        for probe in range(slot_count + _PROBES_IN_HASH):
            # First the parts of the hash itself, then the slots after the last of these.
            if probe < _PROBES_IN_HASH:
                number = int.from_bytes(digest[probe : probe + 4], "big")
            else:
                number += 1
            place = number % slot_count * SLOT_BYTES
            if slots.startswith(digest, place):
                return place, False
            if slots.startswith(_EMPTY, place):
                return place, True
        return 0, True
