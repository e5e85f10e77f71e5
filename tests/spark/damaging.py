"""Flip bits of a file."""

from random import Random

from tests.support.spark.small_logs import SmallLog


def flip(log: SmallLog, random: Random) -> None:
    path = log.inner / random.choice(sorted(log.batches))
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
