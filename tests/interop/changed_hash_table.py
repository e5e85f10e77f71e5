"""A random hash table of keys that share buckets, with the lines for Java's own table."""

from random import Random
from typing import Final, NamedTuple

from kvorum.groups.assignors.hash_table import HashTable, capacity_of
from kvorum.metadata.java_hash import spread_integer

_CAPACITIES: Final = (0, 16, 50, 64, 64, 64, 64, 256)
_STRIDES: Final = (16, 64, 64, 64, 128, 256, 1024)
"""The distances between keys that share a bucket; some of them part when a table is doubled."""
_KEY_COUNTS: Final = (12, 20, 40)
_FILLING_KEY_COUNTS: Final = (0, 30, 36, 38, 40, 80, 86)
_HIGH_BITS: Final = (0, 0, 1 << 31, 1 << 20, 0xFFFF0000)
_SIGN: Final = 1 << 31


class _Key(NamedTuple):
    """A key whose hash is chosen; keys of the same hash have an order."""

    hash: int
    order: int

    @property
    def spread(self) -> int:
        """The hash from whose low bits the table takes a bucket."""
        return spread_integer(self.hash)

    @property
    def order_bytes(self) -> bytes:
        """The bytes by which keys of the same hash are compared."""
        return self.order.to_bytes()

    def __str__(self) -> str:
        return f"{(self.hash ^ _SIGN) - _SIGN}.{self.order}"


class ChangedHashTable:
    """A table of which one bucket grows and shrinks again and again."""

    def __init__(self, random: Random) -> None:
        """Begin with an empty table of some capacity, and choose what keys it may have."""
        self._random = random
        capacity = random.choice(_CAPACITIES)
        self._table: HashTable[_Key] = HashTable(
            lambda key: key.spread,
            capacity_of(capacity),
            order_of=lambda key: key.order_bytes,
        )
        self._keys = self._keys_of_a_bucket()
        self._filling_keys = [
            _Key(random.getrandbits(32), 0) for _ in range(random.choice(_FILLING_KEY_COUNTS))
        ]
        self._filling_ratio = random.choice((0.1, 0.5, 1.0))
        self._computed_ratio = random.choice((0.0, 0.5, 1.0))
        self._is_growing = True
        self.lines = [f"table {capacity}"]

    def step(self) -> str:
        """Change the table; return its keys in their order."""
        random = self._random
        if random.random() < 0.03:
            self._is_growing = not self._is_growing
        present = [key for key in self._table.in_order() if key in self._keys]
        if not present or (random.random() < 0.9) == self._is_growing:
            self._add(self._some_key())
        else:
            key = random.choice(present)
            self._table.remove(key)
            self.lines.append(f"remove {key}")
        return self.text()

    def text(self) -> str:
        """Return the keys in their order."""
        return ",".join(map(str, self._table.in_order()))

    def _keys_of_a_bucket(self) -> list[_Key]:
        """Return keys of one bucket, some of the same hash or of another sign."""
        random = self._random
        stride = random.choice(_STRIDES)
        order_count = random.choice((1, 1, 3, 200))
        keys: list[_Key] = []
        for _ in range(random.choice(_KEY_COUNTS)):
            spread = stride * random.randrange(200) | random.choice(_HIGH_BITS)
            keys.append(_Key(spread_integer(spread), random.randrange(order_count)))
        return keys

    def _some_key(self) -> _Key:
        """Return a key of the bucket, or one that brings the table nearer to its doubling."""
        if self._filling_keys and self._random.random() < self._filling_ratio:
            return self._filling_keys.pop()
        return self._random.choice(self._keys)

    def _add(self, key: _Key) -> None:
        if self._random.random() < self._computed_ratio:
            self._table.compute_if_absent(key)
            self.lines.append(f"compute {key}")
        else:
            self._table.put(key)
            self.lines.append(f"put {key}")
