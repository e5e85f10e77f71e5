"""Messages and files that are damaged at each byte, for judges that read them."""

from collections.abc import Iterator
from random import Random


def damaged(whole: bytes, changes: bytes, random: Random) -> Iterator[bytes]:
    """Yield bytes whole, and cut, shorter by one, longer by one and changed at each place.

    A byte that is new is one of `changes`.
    """
    yield whole
    for place in range(len(whole)):
        byte = bytes([random.choice(changes)])
        yield whole[:place]
        yield whole[:place] + whole[place + 1 :]
        yield whole[:place] + byte + whole[place:]
        yield whole[:place] + byte + whole[place + 1 :]
